'use strict'
const { setTimeout: sleep } = require('node:timers/promises')

const { createClient } = require('redis')

const SEARCH_MS = 60 // in which the airlines' search answers
const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Finds a day's first flight from a time on: {from, to, date, after} -> {flight, departs, hour, distance}.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} the trip with the flight; a route that nobody flies that day leaves it without one
 */
exports.main = async function (args) {
  const state = await ready
  await sleep(SEARCH_MS) // in place of the request
  const text = await state.get(`flightbook:flights:${args.from}:${args.to}:${args.date}`)
  const flight = JSON.parse(text ?? '[]').find(flight => flight.departs >= args.after) // in the order of departure
  return { ...args, ...flight }
}
