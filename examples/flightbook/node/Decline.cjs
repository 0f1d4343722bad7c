'use strict'
const { createClient } = require('redis')

const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Ends a booking that cannot be, and releases what was reserved for it: {user, ...} -> {declined}.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} the reason, told from how far the booking came
 */
exports.main = async function (args) {
  const state = await ready
  const { store, to, date, flight } = args
  const reason = 'seat' in args
    ? 'the payment was refused'
    : 'price' in args ? 'the customer may not book this' : 'flight' in args ? 'no seat is left' : 'nobody flies there then'
  if ('seat' in args) await state.lPush(`${store}:free:${date}:${flight}`, args.seat)
  if ('room' in args) await state.decr(`${store}:rooms:${to}:${date}`)
  if ('carNumber' in args) await state.decr(`${store}:cars:${to}:${date}`)
  await state.incr(`${store}:declined:${reason}`)
  return { declined: reason }
}
