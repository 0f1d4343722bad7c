'use strict'
const { createClient } = require('redis')

const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Writes the booking down, credits its miles (twice to gold customers) and tells the customer: {booking, ...} -> {booking, seat, ...}.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} what was booked
 */
exports.main = async function (args) {
  const state = await ready
  const { store, user, booking, flight, date, departs, seat, delay, price } = args
  const tier = await state.hGet(`${store}:customer:${user}`, 'tier')
  const miles = await state.incrBy(`${store}:miles:${user}`, args.distance * (tier === 'gold' ? 2 : 1))
  await state.hSet(`${store}:booking:${booking}`, { user, flight, date, departs, seat, price })
  await state.rPush(`${store}:messages:${user}`, `${booking} is booked; you have ${miles} miles.`)
  const extras = Object.fromEntries(['room', 'carNumber'].filter(name => name in args).map(name => [name, args[name]]))
  return { booking, flight, departs, seat, delay, price, ...extras, miles }
}
