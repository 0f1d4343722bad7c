// Compares a workflow with itself: the same requests in pairs, one without speculation and one with it.
import { execFileSync } from 'node:child_process'
import os from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'

const PAIRS = 20
const ROUNDS = 8 // of the warm-up, at most
const BUSY = 0.25 // of the processors, in use while the server has nothing to do
const WATCHED_MS = 400

/**
 * What is compared.
 * @typedef {object} Workflow
 * @property {string} action its name
 * @property {object[]} inputs the requests, taken in turn
 * @property {string[]} passing what of a result is another each time, such as a number that counts up
 */

/**
 * One request and its answer.
 * @typedef {object} Answer
 * @property {number} milliseconds from the request to the answer
 * @property {object} record the activation
 * @property {string} speculation what the server says of it
 */

/**
 * Runs the pairs, and prints the medians and the last pair.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {Workflow} workflow what is compared
 * @param {{forerun: string, env: object, say: (text: string) => void}} tools the client commands, and where words go
 */
export async function compare (options, workflow, { forerun, env, say }) {
  const invoke = client(options, workflow.action)
  say(`warming up: ${workflow.inputs.length} requests, until they are known`)
  await warmUp(invoke, workflow.inputs)
  const before = await inUse()
  say(`${PAIRS} pairs of the same request, without and with speculation`)
  const times = { off: [], all: [] }
  let last
  for (let n = 0; n < PAIRS; n++) {
    const input = workflow.inputs[(PAIRS - 1 - n) % workflow.inputs.length] // the first is the last that is shown
    last = {}
    for (const mode of n % 2 ? ['all', 'off'] : ['off', 'all']) { // neither is always the first
      last[mode] = await invoke(input, mode)
      times[mode].push(last[mode].milliseconds)
    }
    const [off, all] = ['off', 'all'].map(mode => lasting(last[mode].record.response.result, workflow.passing))
    if (!isDeepStrictEqual(off, all)) {
      throw new Error(`The results of one request differ, without and with speculation: ${JSON.stringify(off)} and ${JSON.stringify(all)}`)
    }
  }
  const busy = Math.max(before, await inUse())
  const [off, all] = [median(times.off), median(times.all)]
  console.log(`\n${PAIRS} pairs of the same request, with equal results:\np50 ${off.toFixed(0)} ms without, ${all.toFixed(0)} ms with speculation: ${(off / all).toFixed(1)}x`)
  if (busy > BUSY) {
    console.log(`The processors are busy with other work (${(100 * busy).toFixed(0)}% of their time): both take longer, and functions run speculatively less often. Try it on a quiet machine.`)
  }
  const draw = ({ record }) => execFileSync(forerun, ['activation', 'trace', record.activationId], { env, encoding: 'utf8' })
  console.log(`\nThe last pair. Without speculation, ${last.off.milliseconds.toFixed(0)} ms:\n\n${draw(last.off)}\nWith speculation, ${last.all.milliseconds.toFixed(0)} ms:\n\n${draw(last.all)}`)
  console.log('_ workflow   . waits   = runs in order   > runs speculatively   - has ended, its turn has not come   x was squashed   * was not executed')
}

/**
 * Makes a client of one action. It knows the header that npm openwhisk does not.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {string} action its name
 * @returns {(input: object, mode: string) => Promise<Answer>} invokes it
 */
function client ({ apihost, api_key: key }, action) {
  const url = `${apihost}/api/v1/namespaces/_/actions/${action}?blocking=true`
  const authorization = `Basic ${Buffer.from(key).toString('base64')}`
  return async (input, mode) => {
    const headers = { authorization, 'content-type': 'application/json', 'x-forerun-speculate': mode }
    const start = performance.now()
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(input) })
    const record = await answer.json()
    const milliseconds = performance.now() - start
    if (!answer.ok) throw new Error(`${action} failed: ${JSON.stringify(record.response?.result ?? record)}`)
    return { milliseconds, record, speculation: answer.headers.get('x-forerun-speculation') ?? '' }
  }
}

/**
 * Invokes until every request ran speculatively and nothing was squashed; not for long, as on busy processors that may not come.
 * @param {(input: object, mode: string) => Promise<Answer>} invoke the action
 * @param {object[]} inputs the requests
 */
async function warmUp (invoke, inputs) {
  for (let round = 0; round < ROUNDS; round++) {
    let learnt = true
    for (const input of inputs) {
      if (round < 2) await invoke(input, 'off') // how long its functions take by themselves
      const { speculation } = await invoke(input, 'all')
      learnt &&= /early=[1-9].*squashed=0/.test(speculation)
    }
    if (learnt && round > 0) return
  }
}

/**
 * Watches the processors for a moment in which the server has nothing to do.
 * @returns {Promise<number>} the share of their time that is in use
 */
async function inUse () {
  const read = () => os.cpus().reduce(([busy, all], { times }) => {
    const sum = Object.values(times).reduce((a, b) => a + b)
    return [busy + sum - times.idle, all + sum]
  }, [0, 0])
  await sleep(WATCHED_MS / 4) // sandboxes may have something to do behind an answer
  const [busy, all] = read()
  await sleep(WATCHED_MS)
  const [busyNow, allNow] = read()
  return (busyNow - busy) / Math.max(1, allNow - all)
}

const lasting = (result, passing) => Object.fromEntries(Object.entries(result).filter(([name]) => !passing.includes(name)))

const median = list => list.toSorted((a, b) => a - b)[list.length >> 1]
