'use strict'
const { setTimeout: sleep } = require('node:timers/promises')

const { createClient } = require('redis')

const CUSTOMER_MS = 60 // in which the register of customers answers
const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Tells whether a customer may book a trip of this price: {user, price} -> {value}.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} the condition: a known customer who is not blocked and whose limit is not exceeded
 */
exports.main = async function (args) {
  const state = await ready
  await sleep(CUSTOMER_MS) // in place of the request
  const [limit, blocked] = await state.hmGet(`${args.store}:customer:${args.user}`, ['limit', 'blocked'])
  return { value: limit !== null && blocked !== 'yes' && args.price <= Number(limit) }
}
