'use strict'
const { createClient } = require('redis')

const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Takes a car at the destination, if the trip needs one: {to, date, car} -> {carNumber}.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} the trip with its car
 */
exports.main = async function (args) {
  const state = await ready
  if (!args.car) return args
  return { ...args, carNumber: await state.incr(`${args.store}:cars:${args.to}:${args.date}`) }
}
