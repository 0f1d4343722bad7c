'use strict'
const { createClient } = require('redis')

const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Takes the first free seat: {flight, date} -> {seat, booking}.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} the trip with its seat; an error if another booking has taken the last since it was looked at
 */
exports.main = async function (args) {
  const state = await ready
  const seat = await state.lPop(`${args.store}:free:${args.date}:${args.flight}`)
  if (seat === null) return { error: `The last seat of ${args.flight} was taken meanwhile: try again.` }
  return { ...args, seat, booking: `${args.flight}-${args.date}-${seat}` }
}
