// `make run`: starts the server, deploys an example (EXAMPLE=smarthome or flightbook), compares it with and without speculation, and
// serves until Ctrl-C. With ONCE=1 it ends after the comparison. Words go to stderr, results to stdout.
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

import { readProps } from './wskprops.js'

const data = process.env.FORERUN_DATA || '.forerun/run'
const listen = process.env.FORERUN_LISTEN || '127.0.0.1:3233'
const program = 'bin/forerun'
const examples = ['smarthome', 'flightbook']
const say = text => process.stderr.write(text + '\n')

/**
 * Starts the server in a process group of its own: Ctrl-C is for this program, which then ends the server.
 * @returns {{ended: Promise<number>, kill: (signal: string) => void}} the running server
 */
function startServer () {
  const child = spawn(program, ['serve', '--listen', listen, '--data', data], { stdio: ['ignore', 'inherit', 'inherit'], detached: true })
  const ended = new Promise((resolve, reject) => child.on('error', reject).on('exit', (code, signal) => resolve(signal ? 1 : code)))
  return { ended, kill: signal => child.kill(signal) }
}

/**
 * Waits until the server answers at the address that it wrote down.
 * @returns {Promise<string>} that address
 */
async function ready () {
  for (;;) {
    try {
      const { apihost } = readProps(`${data}/wskprops`)
      const answer = await fetch(`${apihost}/healthz`)
      if (answer.ok) return apihost
    } catch { /* not yet */ }
    await sleep(20)
  }
}

/**
 * Lets an example show itself.
 * @param {{show: (options: object, tools: object) => Promise<void>}} example the module of the example
 * @returns {Promise<void>} when it has
 */
function show (example) {
  const env = { ...process.env, WSK_CONFIG_FILE: `${data}/wskprops` }
  return example.show(readProps(env.WSK_CONFIG_FILE), { forerun: program, python: '.forerun/venv/bin/python', env, say })
}

/**
 * Says what can be done next.
 * @param {string} apihost where the server listens
 * @param {{action: string, input: object}} next an invocation
 */
function next (apihost, { action, input }) {
  const auth = `"$(sed -n s/^AUTH=//p ${data}/wskprops)"`
  console.log(`
The server listens on ${apihost}. What to type next, in another terminal, in this folder:
  curl -u ${auth} -H 'Content-Type: application/json' -d '${JSON.stringify(input)}' \\
    '${apihost}/api/v1/namespaces/_/actions/${action}?blocking=true&result=true'
  curl -u ${auth} '${apihost}/api/v1/namespaces/_/activations?limit=5'
  WSK_CONFIG_FILE=${data}/wskprops bin/forerun activation list        (or OpenWhisk's own: wsk activation list)
  WSK_CONFIG_FILE=${data}/wskprops bin/forerun activation trace --last        (when each function ran, and what was speculative)
  bin/forerun speculation get --operator ${data}/operator        (the operator's key: whether workflows are speculative; \`off\` and \`on\`)
Ctrl-C ends it, and \`kill\` where it runs in the background; what was written stays in ${data}.`)
}

/**
 * The whole program.
 * @returns {Promise<number>} the exit code
 */
async function main () {
  const name = process.env.EXAMPLE || examples[0]
  if (!examples.includes(name)) {
    say(`make run: there is no example ${name}: EXAMPLE is one of ${examples.join(', ')}`)
    return 2
  }
  const example = await import(`./${name}/show.js`)
  const server = startServer()
  let stopping = false
  const stop = () => {
    stopping = true
    server.kill('SIGTERM')
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop)
  const early = server.ended.then(code => stopping ? 0 : Promise.reject(new Error(`The server ended (exit code ${code}); its message is above. Another address or folder: FORERUN_LISTEN=127.0.0.1:0 FORERUN_DATA=DIR make run`)))
  try {
    const apihost = await Promise.race([ready(), early])
    if (!stopping) await Promise.race([show(example), early])
    if (process.env.ONCE) stop()
    else if (!stopping) next(apihost, example.next)
  } catch (error) {
    if (!stopping) {
      say(`make run: ${error.message}`)
      stop()
      await server.ended
      return 1
    }
  }
  const code = await server.ended
  return stopping ? code : 1
}

process.exit(await main())
