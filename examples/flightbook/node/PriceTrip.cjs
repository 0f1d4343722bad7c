'use strict'
const { setTimeout: sleep } = require('node:timers/promises')

const { createClient } = require('redis')

const LONG_DELAY = 30
const RATES_MS = 60 // in which the hotels and car rentals answer
const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Prices flight, hotel and car: {to, departs, distance, delay, nights, car} -> {price}, in cents.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} the trip with its price: 15% off for odd hours, 10% for a long delay; a car is kept at least a day
 */
exports.main = async function (args) {
  const state = await ready
  await sleep(RATES_MS) // in place of the request
  const [hotel, car] = (await state.hmGet(`flightbook:rates:${args.to}`, ['hotel', 'car'])).map(rate => Number(rate ?? 0))
  let fare = 4900 + 11 * args.distance
  if (args.departs < '07:00' || args.departs >= '20:00') fare = Math.floor(fare * 85 / 100)
  if (args.delay >= LONG_DELAY) fare = Math.floor(fare * 90 / 100)
  const rented = args.car ? car * Math.max(1, args.nights) : 0
  return { ...args, price: fare + hotel * args.nights + rented }
}
