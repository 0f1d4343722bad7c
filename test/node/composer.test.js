// The npm client openwhisk-composer, unchanged, against a running server; and the example, which is written with it.
import assert from 'node:assert/strict'
import test from 'node:test'

import openwhisk from 'openwhisk'
import composer from 'openwhisk-composer'
import client from 'openwhisk-composer/client.js'

import { deploy, residents } from '../../examples/smarthome/deploy.js'
import { components, invokeAll, table } from '../../examples/smarthome/invoke.js'
import { readProps } from '../../examples/wskprops.js'

const props = readProps(process.env.WSK_CONFIG_FILE)
const ow = openwhisk(props)

/**
 * Deploys a composition.
 * @param {string} name of it
 * @param {object} composition made with composer
 * @returns {Promise<object[]>} what was deployed
 */
const put = (name, composition) => client(props, true).compositions.deploy({ name, ...composition.compile() }, true)

/**
 * Deploys a Python action.
 * @param {string} name of it
 * @param {string} expression of args, which it returns
 * @returns {Promise<object>} the action
 */
const python = (name, expression) => ow.actions.update({ name, kind: 'python:3', action: `def main(args):\n    return ${expression}\n` })

test('sequence, if and action run as they are composed', async () => {
  await python('inc', '{"n": args["n"] + 1}')
  await python('even', '{"value": args["n"] % 2 == 0}')
  await python('half', '{"n": args["n"] // 2}')
  await put('collatz', composer.sequence('inc', composer.if('even', 'half'), composer.action('inc')))
  const invoke = n => ow.actions.invoke({ name: 'collatz', params: { n }, blocking: true, result: true })
  assert.deepEqual(await invoke(3), { n: 3 }) // 4 is even, 2, 3
  assert.deepEqual(await invoke(4), { n: 6 }) // 5 is not, 6
})

test('an error ends a composition', async () => {
  await python('refuse', '{"error": "not today"}')
  await put('refused', composer.sequence('refuse', 'inc'))
  await assert.rejects(ow.actions.invoke({ name: 'refused', params: { n: 1 }, blocking: true }), error => {
    assert.equal(error.statusCode, 502)
    assert.equal(error.error.response.result.error, 'not today')
    return true
  })
})

test('a composition in a composition', async () => {
  await python('inc', '{"n": args["n"] + 1}')
  await put('inner', composer.sequence('inc', 'inc'))
  await put('outer', composer.sequence('inner', 'inc', 'inner'))
  assert.deepEqual(await ow.actions.invoke({ name: 'outer', params: { n: 0 }, blocking: true, result: true }), { n: 5 })
})

test('the smart home: a warm hour, a cool hour, a wrong password', async () => {
  await deploy(props)
  const readings = { LGA: { 'warm-hour': 95, 'cool-hour': 50 } }
  await ow.actions.invoke({ name: 'Seed', params: { ...residents, readings }, blocking: true, result: true })
  const ada = { user: 'ada', password: 'analytical' }
  const [warm, cool, denied] = await invokeAll(props, [{ ...ada, hour: 'warm-hour' }, { ...ada, hour: 'cool-hour' }, { ...ada, password: '?', hour: 'warm-hour' }])
  assert.deepEqual(warm.result, { user: 'ada', home: 'manhattan', hour: 'warm-hour', celsius: 35, air: 'on', entry: 1 })
  assert.deepEqual(cool.result, { user: 'ada', home: 'manhattan', hour: 'cool-hour', celsius: 10, air: 'off', entry: 2 })
  assert.deepEqual(denied.result, { denied: true, attempts: 1 })
  const names = async run => (await components(props, run.record)).map(r => r.name)
  assert.deepEqual(await names(warm), ['Login', 'ReadTemp', 'Normalize', 'CompareTemp', 'TurnAir', 'Done'])
  assert.deepEqual(await names(cool), ['Login', 'ReadTemp', 'Normalize', 'CompareTemp', 'Done'])
  assert.deepEqual(await names(denied), ['Login', 'Fail'])
  assert.equal(table(await components(props, denied.record)).split('\n').length, 3)
})

/**
 * Deploys and invokes a composition.
 * @param {string} name of it
 * @param {object} composition made with composer
 * @param {object} params of the invocation
 * @returns {Promise<object>} its result
 */
const run = async (name, composition, params) => {
  await put(name, composition)
  return ow.actions.invoke({ name, params, blocking: true, result: true })
}

test('functions written in line run, and share the variables of let', async () => {
  await python('inc', '{"n": args["n"] + 1}')
  /* global seen, step:writable */
  const composition = composer.let({ seen: [], step: 10 },
    ({ n }) => { seen.push(n); step += n; return { n: n * 2 } },
    'inc',
    params => { seen.push(params.n) },
    composer.function(({ n }) => ({ n, seen, step })))
  for (const n of [3, 5]) { // a handler that stays begins the second time with the variables of the second
    assert.deepEqual(await run('inline', composition, { n }), { n: n * 2 + 1, seen: [n, n * 2 + 1], step: 10 + n })
  }
})

test('functions written in line decide, loop and fail', async () => {
  /* global count:writable */
  const countdown = composer.let({ count: 3 }, composer.while(() => count-- > 0, ({ trail }) => ({ trail: [...trail, count] })))
  assert.deepEqual(await run('countdown', countdown, { trail: [] }), { trail: [2, 1, 0] })
  const caught = composer.try(() => { throw new Error('nooo') }, ({ error }) => ({ caught: error.includes('exception') }))
  assert.deepEqual(await run('caught', caught, {}), { caught: true })
  const branch = composer.if(({ n }) => n > 1, () => ({ is: 'more' }), async () => ({ is: 'less' }))
  assert.deepEqual([await run('branch', branch, { n: 1 }), await run('branch', branch, { n: 2 })], [{ is: 'less' }, { is: 'more' }])
})

test('functions written in line run side by side', async () => {
  const squares = composer.map(({ n }) => ({ square: n * n }))
  const { value } = await run('squares', squares, { value: [{ n: 1 }, { n: 2 }, { n: 3 }] })
  assert.deepEqual(value, [{ square: 1 }, { square: 4 }, { square: 9 }])
})
