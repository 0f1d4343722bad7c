'use strict'
const { createClient } = require('redis')

const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Takes the price from the customer's account, and gives it back if that was more than there is: {user, price} -> {value}.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} the condition
 */
exports.main = async function (args) {
  const state = await ready
  const account = `${args.store}:account:${args.user}`
  const left = await state.decrBy(account, args.price)
  if (left < 0) await state.incrBy(account, args.price)
  console.log(`${args.price} cents from ${args.user}: ${left >= 0 ? 'paid' : 'refused'}`)
  return { value: left >= 0 }
}
