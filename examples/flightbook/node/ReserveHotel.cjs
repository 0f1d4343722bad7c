'use strict'
const { createClient } = require('redis')

const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Takes a room at the destination, if the trip needs one: {to, date, nights} -> {room}.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} the trip with its room
 */
exports.main = async function (args) {
  const state = await ready
  if (args.nights === 0) return args
  return { ...args, room: await state.incr(`${args.store}:rooms:${args.to}:${args.date}`) }
}
