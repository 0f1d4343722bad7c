import { components, table } from '../smarthome/invoke.js'
import { book, deploy, seed, world } from './book.js'
import { variants } from './composition.js'

/** What to type after it was shown. */
export const next = {
  action: 'flightbook-python',
  input: { user: 'user01', from: 'JFK', to: 'LAX', date: '2013-07-01', after: '12:00', nights: 2, car: true }
}

const COUNT = 100

/**
 * Deploys FlightBook, books with each variant, and prints what a reader wants to see.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {{forerun: string, python: string, env: object, say: (text: string) => void}} tools the programs, and where words go
 */
export async function show (options, { forerun, python, env, say }) {
  say(await deploy(forerun, env))
  await seed(options, await world(python))
  say("wrote New York's flights of three days, their weather, seats and customers into the state of the functions")
  const requests = await world(python, String(COUNT))
  for (const variant of variants) {
    const runs = await book(options, variant, requests)
    console.log(`\n${variant}: ${summary(runs)}`)
    const last = runs.findLast(run => run.result.booking)
    console.log(`${JSON.stringify(last.request)}\n  ${JSON.stringify(last.result)}\n${table(await components(options, last.record))}`)
  }
}

/**
 * Counts how bookings ended.
 * @param {{result: object, milliseconds: number}[]} runs of one variant
 * @returns {string} a line
 */
function summary (runs) {
  const counts = {}
  for (const { result } of runs) {
    const ending = result.declined ?? 'booked'
    counts[ending] = (counts[ending] ?? 0) + 1
  }
  const times = runs.map(run => run.milliseconds).sort((a, b) => a - b)
  return `${runs.length} requests, p50 ${times[times.length >> 1].toFixed(1)} ms: ` +
    Object.entries(counts).map(([ending, count]) => `${count} ${ending}`).join(', ')
}
