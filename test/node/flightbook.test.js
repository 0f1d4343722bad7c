// examples/flightbook: the same application in Python, in Node and mixed with Go answers the same and leaves the same state.
import assert from 'node:assert/strict'
import test from 'node:test'

import openwhisk from 'openwhisk'

import { book, deploy, seed } from '../../examples/flightbook/book.js'
import { variants } from '../../examples/flightbook/composition.js'
import { readProps } from '../../examples/wskprops.js'

const props = readProps(process.env.WSK_CONFIG_FILE)
const ow = openwhisk(props)

// Two flights that differ in whatever the functions look at, and customers for each way that a booking can end.
const documents = [
  {
    flights: {
      'JFK:LAX:2013-07-01': [
        { flight: 'UA15', departs: '06:30', hour: '2013-07-01T10', distance: 2475 },
        { flight: 'DL7', departs: '19:30', hour: '2013-07-01T23', distance: 2475 }]
    },
    weather: { JFK: { '2013-07-01T10': { wind: 187, visibility: 37, rain: 9 }, '2013-07-01T23': { wind: 90, visibility: 100, rain: 0 } } },
    delays: { JFK: { UA: 17 } },
    rates: { LAX: { hotel: 12345, car: 4567 } }
  },
  { seats: { '2013-07-01:UA15': ['1A', '1B', '1C'], '2013-07-01:DL7': ['9C'] } },
  {
    customers: {
      ada: { tier: 'gold', limit: 500000, blocked: 'no', account: 1000000 },
      poor: { tier: 'blue', limit: 500000, blocked: 'no', account: 40000 },
      blocked: { tier: 'blue', limit: 500000, blocked: 'yes', account: 1000000 },
      careful: { tier: 'blue', limit: 20000, blocked: 'no', account: 1000000 }
    }
  }
]

const trip = { user: 'ada', from: 'JFK', to: 'LAX', date: '2013-07-01', after: '06:00', nights: 0, car: false }
const requests = [
  trip,
  { ...trip, nights: 3, car: true },
  { ...trip, user: 'poor', nights: 2, car: true }, // the seat, the room and the car are released
  { ...trip, car: true },
  trip, // no seat is left
  { ...trip, after: '07:00', nights: 1 },
  { ...trip, after: '20:00' }, // no flight
  { ...trip, to: 'XXX' },
  { ...trip, date: '2013-07-02' }
]
const refused = ['blocked', 'careful', 'nobody'].map(user => ({ ...trip, user }))

/**
 * Names every key that these bookings can have written.
 * @param {object[]} results of them
 * @returns {string[]} the keys, without the variant's own prefix
 */
function keysOf (results) {
  const users = [...Object.keys(documents[2].customers), 'nobody']
  const flights = ['2013-07-01:UA15', '2013-07-01:DL7']
  const reasons = new Set(results.map(result => result.declined).filter(Boolean))
  return [
    ...flights.map(flight => `free:${flight}`),
    ...users.flatMap(user => ['customer', 'account', 'miles', 'messages'].map(key => `${key}:${user}`)),
    ...results.filter(result => result.booking).map(result => `booking:${result.booking}`),
    ...[...reasons].map(reason => `declined:${reason}`),
    ...['rooms', 'cars'].map(key => `${key}:LAX:2013-07-01`)
  ]
}

// Returns what is under keys of one variant.
const dump = `
import os, redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
READ = {"string": state.get, "hash": state.hgetall, "list": lambda key: state.lrange(key, 0, -1)}

def main(args):
    prefix = args["store"] + ":"
    return {key: READ[state.type(prefix + key)](prefix + key) for key in args["keys"] if state.exists(prefix + key)}
`

test('three variants, one application', async t => {
  await t.test('forerun deploy', async () => {
    const said = await deploy(process.env.FORERUN, process.env)
    assert.match(said, /37 created/)
    assert.match(await deploy(process.env.FORERUN, process.env), /37 unchanged/)
    await ow.actions.update({ name: 'dump', kind: 'python:3', action: dump })
    await seed(props, documents)
  })

  const seen = {}
  for (const variant of variants) {
    await t.test(`${variant} books and declines`, async () => {
      const runs = await book(props, variant, [...refused, ...requests])
      const results = runs.map(({ result }) => {
        delete result.store // a composition's own parameters come back
        return result
      })
      const params = { store: `flightbook-${variant}`, keys: keysOf(results) }
      seen[variant] = { results, state: await ow.actions.invoke({ name: 'dump', params, blocking: true, result: true }) }
      const [first, second, poor, third, full, late, ...none] = seen[variant].results.slice(refused.length)
      const common = { flight: 'UA15', departs: '06:30', delay: 17 + 3 + 15 + 4 }
      const fare = Math.floor(Math.floor((4900 + 11 * 2475) * 0.85) * 0.9)
      assert.deepEqual(first, { ...common, booking: 'UA15-2013-07-01-1A', seat: '1A', price: fare, miles: 4950 })
      assert.deepEqual(second, { ...common, booking: 'UA15-2013-07-01-1B', seat: '1B', price: fare + 3 * 12345 + 3 * 4567, room: 1, carNumber: 1, miles: 9900 })
      assert.deepEqual(poor, { declined: 'the payment was refused' })
      assert.deepEqual(third, { ...common, booking: 'UA15-2013-07-01-1C', seat: '1C', price: fare + 4567, carNumber: 2, miles: 14850 })
      assert.deepEqual(full, { declined: 'no seat is left' })
      assert.deepEqual(late, { flight: 'DL7', departs: '19:30', delay: 0, booking: 'DL7-2013-07-01-9C', seat: '9C', price: 4900 + 11 * 2475 + 12345, room: 2, miles: 19800 })
      assert.deepEqual(none, Array(3).fill({ declined: 'nobody flies there then' }))
      assert.deepEqual(seen[variant].results.slice(0, refused.length), Array(3).fill({ declined: 'the customer may not book this' }))
    })
  }

  await t.test('their results and their final states are equal', () => {
    assert.deepEqual(seen.node, seen.python)
    assert.deepEqual(seen.mixed, seen.python)
    assert.equal(Object.keys(seen.python.state).length, 20)
    assert.equal(seen.python.state['rooms:LAX:2013-07-01'], '2')
    assert.equal(seen.python.state['account:poor'], '40000')
    assert.equal(seen.python.state['messages:ada'].length, 4)
  })
})
