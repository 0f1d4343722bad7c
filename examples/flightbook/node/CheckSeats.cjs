'use strict'
const { setTimeout: sleep } = require('node:timers/promises')

const { createClient } = require('redis')

const SEATS_MS = 60 // in which the airline answers
const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Tells whether there is a flight with a seat left: {flight, date} -> {value}.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} the condition
 */
exports.main = async function (args) {
  const state = await ready
  await sleep(SEATS_MS) // in place of the request
  const free = 'flight' in args ? await state.lLen(`${args.store}:free:${args.date}:${args.flight}`) : 0
  console.log(`${args.flight ?? 'no flight'}: ${free} free`)
  return { value: free > 0 }
}
