import { compare } from '../pairs.js'
import { deploy, seed, world } from './book.js'

/** What to type after it was shown. */
export const next = {
  action: 'flightbook-python',
  input: { user: 'user01', from: 'JFK', to: 'LAX', date: '2013-07-01', after: '12:00', nights: 2, car: true }
}

/** What the functions wait for. */
const about = `FlightBook: eleven functions and three branches, on flights and weather of New York in July 2013.
FindFlight waits 60 ms for the airlines' search, CheckSeats for the airline, ForecastDelay for a weather service, PriceTrip for hotels and car
rentals, CheckCustomer for a register of customers: they sleep that long. The rest is state.`

const REQUESTS = 5

/**
 * Deploys FlightBook, and compares the variant in Python with and without speculation.
 * @param {{apihost: string, api_key: string}} options of the client
 * @param {{forerun: string, python: string, env: object, say: (text: string) => void}} tools the programs, and where words go
 */
export async function show (options, tools) {
  tools.say(await deploy(tools.forerun, tools.env))
  await seed(options, await world(tools.python))
  tools.say("wrote New York's flights of three days, their weather, seats and customers into the state of the functions")
  console.log(`\n${about}`)
  const inputs = await world(tools.python, String(REQUESTS))
  await compare(options, { action: 'flightbook-python', inputs, passing: ['booking', 'seat', 'miles', 'room', 'carNumber'] }, tools)
}
