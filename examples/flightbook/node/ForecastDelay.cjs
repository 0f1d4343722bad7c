'use strict'
const { setTimeout: sleep } = require('node:timers/promises')

const { createClient } = require('redis')

const WEATHER_MS = 60 // in which the weather service answers
const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

/**
 * Expects a delay of weather and carrier: {flight, from, hour} -> {delay}, in minutes.
 * @param {object} args - the trip so far
 * @returns {Promise<object>} the trip with what wind (tenths of mph), haze (tenths of a mile) and rain (hundredths of an inch) add to what is usual
 */
exports.main = async function (args) {
  const state = await ready
  await sleep(WEATHER_MS) // in place of the request
  const usual = Number(await state.hGet(`flightbook:delays:${args.from}`, args.flight.slice(0, 2)) ?? 0)
  const weather = JSON.parse(await state.hGet(`flightbook:weather:${args.from}`, args.hour) ?? '{}')
  const wind = Math.floor(Math.max(0, (weather.wind ?? 0) - 150) / 10)
  const haze = Math.floor(Math.max(0, 100 - (weather.visibility ?? 100)) / 4)
  const rain = Math.floor((weather.rain ?? 0) / 2)
  return { ...args, delay: usual + wind + haze + rain }
}
