// A function that does what a test asks it to.
const { spawn } = require('child_process')
const fs = require('fs')
const { createClient } = require('redis')

let calls = 0
let redis

function sleepers () {
  return fs.readdirSync('/proc').filter(p => {
    try {
      return fs.readFileSync(`/proc/${p}/cmdline`, 'utf8').startsWith('/bin/sleep')
    } catch {
      return false
    }
  }).length
}

exports.main = async args => {
  calls++
  switch (args.do ?? 'echo') {
    case 'throw': throw new Error('nooo')
    case 'exit': process.exit(3)
    case 'sleep': await new Promise(resolve => setTimeout(resolve, 60_000)) // eslint-disable-line no-fallthrough
    case 'memory': for (const hog = []; args.do === 'memory';) hog.push(Buffer.alloc(8 << 20, 1)) // eslint-disable-line no-fallthrough
    case 'log': // eslint-disable-line no-fallthrough
      console.log('to stdout')
      console.error('to stderr')
      break
    case 'leave': {
      const found = { files: fs.readdirSync('/tmp').length, children: sleepers(), calls }
      fs.mkdirSync('/tmp/folder')
      fs.writeFileSync('/tmp/folder/file', '')
      spawn('/bin/sleep', ['1000'], { detached: true, stdio: 'ignore' }).unref()
      return found
    }
    case 'interfaces':
      return { names: Object.keys(require('os').networkInterfaces()) }
    case 'count':
      if (!redis) {
        redis = createClient({ url: process.env.REDIS_URL })
        await redis.connect()
      }
      return { n: await redis.incr('counter') }
  }
  return { calls, id: process.env.__OW_ACTIVATION_ID, action: process.env.__OW_ACTION_NAME, n: (args.n ?? 0) + 1 }
}
