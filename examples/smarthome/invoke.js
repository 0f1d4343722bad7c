import openwhisk from 'openwhisk'

import { invoke } from '../invoke.js'

/** Hours of 2013 (UTC) and who asks: warm and cool ones, and one who does not know the password. */
export const inputs = [
  { user: 'ada', password: 'analytical', hour: '2013-07-18T18' },
  { user: 'ada', password: 'analytical', hour: '2013-01-24T12' },
  { user: 'grace', password: 'nanosecond', hour: '2013-07-06T19' },
  { user: 'grace', password: 'nanosecond', hour: '2013-05-14T09' },
  { user: 'grace', password: 'guessed', hour: '2013-07-06T19' }
]

/**
 * One invocation, and the records of what was executed for it.
 * @typedef {object} Run
 * @property {object} input of the composition
 * @property {object} result what it returned
 * @property {number} milliseconds from the request to the answer
 * @property {object} record the activation record of the composition
 */

/**
 * Invokes the composition once for each input.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {object[]} [list] the inputs
 * @returns {Promise<Run[]>} in the order of the inputs
 */
export async function invokeAll (options, list = inputs) {
  const ow = openwhisk(options)
  const runs = []
  for (const input of list) {
    const start = performance.now()
    const record = await invoke(ow, 'smarthome', input)
    runs.push({ input, result: record.response.result, milliseconds: performance.now() - start, record })
  }
  return runs
}

/**
 * Fetches the records of the functions that one invocation executed, in the order of their start.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {object} record of the composition: its logs are the ids of its components
 * @returns {Promise<object[]>} their activation records
 */
export async function components (options, record) {
  const ow = openwhisk(options)
  const { logs } = await ow.activations.get({ name: record.activationId })
  return Promise.all(logs.map(id => ow.activations.get({ name: id })))
}

/**
 * Renders the records of a run as a table.
 * @param {object[]} records of the components
 * @returns {string} lines of text
 */
export function table (records) {
  const annotation = (record, key) => record.annotations.find(a => a.key === key)?.value ?? ''
  const rows = records.map(r => [r.name, r.start - records[0].start, r.duration, annotation(r, 'waitTime'),
    annotation(r, 'initTime'), r.response.status, JSON.stringify(r.response.result)])
  const head = ['function', 'start', 'ms', 'wait', 'init', 'status', 'result']
  const widths = head.map((h, i) => Math.max(...[h, ...rows.map(row => row[i])].map(cell => String(cell).length)))
  const line = row => '  ' + row.map((cell, i) => {
    const text = String(cell)
    return typeof rows[0][i] === 'number' ? text.padStart(widths[i]) : text.padEnd(widths[i])
  }).join('  ').trimEnd()
  return [head, ...rows].map(line).join('\n')
}
