// A function that does the harm it is asked to, and looks for what is left of earlier harm.
const { spawn } = require('child_process')
const fs = require('fs')
const { Worker } = require('worker_threads')

function sleeps (process) {
  try {
    return fs.readFileSync(`/proc/${process}/cmdline`, 'utf8').includes('sleep')
  } catch {
    return false
  }
}

function forEachDescriptor (act) {
  for (let fd = 3; fd < 64; fd++) {
    try {
      act(fd)
    } catch {
      continue // there is none, or it takes nothing
    }
  }
}

const harm = {
  loop () { for (;;); },
  memory () { for (const hog = []; ;) hog.push(Buffer.alloc(8 << 20, 1)) },
  fork () { for (;;) spawn('/bin/sh', ['-c', 'bomb() { bomb | bomb & }; bomb; while :; do :; done']).on('error', () => {}) },
  disk () { for (const fd = fs.openSync('/tmp/full', 'w'); ;) fs.writeSync(fd, Buffer.alloc(1 << 20)) },
  flood () {
    for (let i = 0; i < 1 << 15; i++) console.log('x'.repeat(100))
    return { ok: true }
  },
  signal () { process.kill(process.pid, 'SIGSEGV') },
  exit () { process.exit(3) },
  close () {
    forEachDescriptor(fs.closeSync)
    return {}
  },
  noise () {
    forEachDescriptor(fd => fs.writeSync(fd, Buffer.alloc(4096, 255)))
    for (;;);
  },
  number () { return 3 },
  'no JSON' () {
    const x = {}
    x.x = x
    return x
  },
  long () { return { x: 'y'.repeat(7 << 20) } },
  deep () {
    let x = []
    for (let i = 0; i < 600; i++) x = [x]
    return { x }
  },
  children () {
    for (const folder of ['/tmp', '/dev/shm']) fs.writeFileSync(`${folder}/left`, '')
    spawn('/bin/sh', ['-c', 'sleep 1000 & sleep 1000'], { detached: true, stdio: 'ignore' }).unref()
    return { ok: true }
  },
  threads () {
    for (let i = 0; i < 3; i++) new Worker('for (;;);', { eval: true }).unref()
    return { ok: true }
  }
}

exports.main = args => {
  if (args.do !== 'look') return harm[args.do]()
  return {
    environment: 0, // of a process that stays
    files: fs.readdirSync('/tmp').length + fs.readdirSync('/dev/shm').length,
    processes: fs.readdirSync('/proc').filter(sleeps).length
  }
}
