// The services that Restate runs: a chain of ten calls of another service, and the same as ten steps of one handler.
// Prints the address it serves, until its standard input ends.

import http2 from 'node:http2'
import { setTimeout as after } from 'node:timers/promises'
import * as restate from '@restatedev/restate-sdk'

const stages = 10

/**
 * Returns its input, after as many milliseconds as it says.
 * @param {{wait?: number}} input the input
 * @returns {Promise<object>} the same
 */
async function work (input) {
  if (input.wait) await after(input.wait)
  return input
}

const worker = restate.service({ name: 'worker', handlers: { work: (ctx, input) => work(input) } })

const chain = restate.service({
  name: 'chain',
  handlers: {
    calls: async (ctx, input) => {
      let value = input
      for (let i = 0; i < stages; i++) value = await ctx.serviceClient(worker).work(value)
      return value
    },
    steps: async (ctx, input) => {
      let value = input
      for (let i = 0; i < stages; i++) {
        const before = value
        value = await ctx.run(`step ${i}`, () => work(before))
      }
      return value
    }
  }
})

const server = http2.createServer(restate.createEndpointHandler({ services: [worker, chain] }))
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
process.stdin.resume().on('end', () => process.exit())
