// `make run`: starts the server, deploys the smart home, invokes it, shows what happened, and serves until Ctrl-C.
// With ONCE=1 it ends after the invocations. Words go to stderr, results to stdout.
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

import { deploy, seed } from './deploy.js'
import { components, invokeAll, table } from './invoke.js'
import { readProps } from './wskprops.js'

const data = process.env.FORERUN_DATA || '.forerun/run'
const listen = process.env.FORERUN_LISTEN || '127.0.0.1:3233'
const say = text => process.stderr.write(text + '\n')

/**
 * Starts the server in a process group of its own: Ctrl-C is for this program, which then ends the server.
 * @returns {{ended: Promise<number>, kill: (signal: string) => void}} the running server
 */
function startServer () {
  const child = spawn('bin/forerun', ['serve', '--listen', listen, '--data', data], { stdio: ['ignore', 'inherit', 'inherit'], detached: true })
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

/** Deploys and invokes the example, and prints what a reader wants to see. */
async function show () {
  const options = readProps(`${data}/wskprops`)
  const names = await deploy(options)
  say(`deployed ${names.join(', ')}`)
  say(`wrote ${await seed(options, '.forerun/venv/bin/python')} hourly measurements of New York's weather into the state of the functions`)
  const runs = await invokeAll(options)
  for (const run of runs) {
    const { password, ...shown } = run.input
    console.log(`\n${JSON.stringify({ ...shown, password: '*'.repeat(password.length) })}\n  ${JSON.stringify(run.result)}  (${run.milliseconds.toFixed(1)} ms)`)
  }
  const third = runs[2].record
  console.log(`\nWhat the third one executed (milliseconds; activation ${third.activationId}):\n${table(await components(options, third))}`)
}

/**
 * Says what can be done next.
 * @param {string} apihost where the server listens
 */
function next (apihost) {
  const auth = `"$(sed -n s/^AUTH=//p ${data}/wskprops)"`
  console.log(`
The server listens on ${apihost}. What to type next, in another terminal, in this folder:
  curl -u ${auth} -H 'Content-Type: application/json' -d '{"user":"ada","password":"analytical","hour":"2013-07-19T17"}' \\
    '${apihost}/api/v1/namespaces/_/actions/smarthome?blocking=true&result=true'
  curl -u ${auth} '${apihost}/api/v1/namespaces/_/activations?limit=5'
  WSK_CONFIG_FILE=${data}/wskprops bin/forerun activation list        (or OpenWhisk's own: wsk activation list)
Ctrl-C ends it; what was written stays in ${data}.`)
}

/**
 * The whole program.
 * @returns {Promise<number>} the exit code
 */
async function main () {
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
    if (!stopping) await Promise.race([show(), early])
    if (process.env.ONCE) stop()
    else if (!stopping) next(apihost)
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
