// Packages, triggers, rules and feeds through the npm client openwhisk, unchanged, against a running server.
import assert from 'node:assert/strict'
import test from 'node:test'

import openwhisk from 'openwhisk'
import composer from 'openwhisk-composer'
import client from 'openwhisk-composer/client.js'

import { readProps } from '../../examples/wskprops.js'

const props = readProps(process.env.WSK_CONFIG_FILE)
const ow = openwhisk(props)
const give = 'def main(args):\n    return args\n'
const python = { action: give, kind: 'python:3' }
const run = (name, params) => ow.actions.invoke({ name, params, blocking: true, result: true })
const pairs = list => Object.fromEntries(list.map(({ key, value }) => [key, value]))

test('a package is created, read, listed, updated and deleted', async () => {
  const created = await ow.packages.create({ name: 'tools', package: { annotations: [{ key: 'description', value: 'tools' }] } })
  assert.deepEqual([created.name, created.namespace, created.version, created.publish, created.binding], ['tools', 'guest', '0.0.1', false, {}])
  await assert.rejects(ow.packages.create({ name: 'tools' }), { statusCode: 409 })
  const updated = await ow.packages.update({ name: 'tools', package: { publish: true } })
  assert.equal(updated.version, '0.0.2')
  assert.deepEqual(pairs(updated.annotations), { description: 'tools' })
  const [listed] = (await ow.packages.list()).filter(p => p.name === 'tools')
  assert.deepEqual([listed.publish, listed.binding], [true, false])
  assert.deepEqual((await ow.packages.get('tools')).actions, [])
  await ow.packages.delete('tools')
  await assert.rejects(ow.packages.get('tools'), { statusCode: 404 })
})

test('actions live in packages and inherit their parameters', async () => {
  await assert.rejects(ow.actions.create({ name: 'none/a', ...python }), { statusCode: 404 })
  await ow.packages.create({ name: 'shop', package: { parameters: [{ key: 'city', value: 'Turin' }, { key: 'sum', value: 1 }] } })
  await ow.actions.create({ name: 'shop/buy', ...python, params: { sum: 2 } })
  assert.deepEqual(await run('shop/buy', { item: 'tea' }), { city: 'Turin', sum: 2, item: 'tea' })
  assert.deepEqual(await run('/_/shop/buy', { city: 'Bari' }), { city: 'Bari', sum: 2 })
  assert.deepEqual(pairs((await ow.actions.get('shop/buy')).parameters), { city: 'Turin', sum: 2 })
  assert.deepEqual((await ow.packages.get('shop')).actions.map(a => a.name), ['buy'])
  const [listed] = (await ow.actions.list()).filter(a => a.name === 'buy')
  assert.equal(listed.namespace, 'guest/shop')
  await assert.rejects(ow.packages.delete('shop'), { statusCode: 409 })
  await ow.packages.update({ name: 'shop', package: { parameters: [] } })
  assert.deepEqual(await run('shop/buy', {}), { sum: 2 })
  await ow.actions.delete('shop/buy')
  await ow.packages.delete('shop')
})

test('a binding has its package’s actions and parameters of its own', async () => {
  await ow.packages.create({ name: 'base', package: { parameters: [{ key: 'a', value: 1 }, { key: 'b', value: 1 }] } })
  await ow.actions.create({ name: 'base/give', ...python, params: { c: 1 } })
  await ow.packages.create({ name: 'bound', package: { binding: { namespace: '_', name: 'base' }, parameters: [{ key: 'b', value: 2 }, { key: 'c', value: 2 }] } })
  assert.deepEqual(await run('bound/give', { d: 3 }), { a: 1, b: 2, c: 1, d: 3 })
  const bound = await ow.packages.get('bound')
  assert.deepEqual(bound.binding, { namespace: 'guest', name: 'base' })
  assert.deepEqual(pairs(bound.parameters), { a: 1, b: 2, c: 2 })
  assert.deepEqual(bound.actions.map(a => a.name), ['give'])
  const record = await ow.actions.invoke({ name: 'bound/give', blocking: true })
  assert.deepEqual([pairs(record.annotations).path, pairs(record.annotations).binding], ['guest/base/give', 'guest/bound'])
  await assert.rejects(ow.actions.update({ name: 'bound/other', ...python }), { statusCode: 400 })
  await assert.rejects(ow.packages.create({ name: 'twice', package: { binding: { namespace: '_', name: 'bound' } } }), { statusCode: 400 })
  await ow.packages.delete('bound')
})

test('sequences name packaged actions and public ones', async () => {
  await ow.packages.update({ name: 'steps', package: { parameters: [{ key: 'lines', value: ['b', 'a'] }] } })
  await ow.actions.update({ name: 'steps/first', ...python })
  await ow.actions.update({ name: 'steps/all', sequence: ['/_/steps/first', '/whisk.system/utils/sort', '/whisk.system/utils/cat'] })
  assert.deepEqual(await run('steps/all', {}), { lines: ['a', 'b'], payload: 'a\nb' })
})

test('compositions live in packages and name packaged actions', async () => {
  await ow.packages.update({ name: 'flow', package: { parameters: [{ key: 'x', value: 1 }] } })
  await ow.packages.update({ name: 'flow2', package: { binding: { namespace: '_', name: 'flow' }, parameters: [{ key: 'x', value: 2 }] } })
  await ow.actions.update({ name: 'flow/step', ...python })
  const composition = composer.sequence('flow2/step', '/_/flow/step', composer.if('/whisk.system/utils/echo', '/whisk.system/utils/namespace'))
  await client(props, true).compositions.deploy({ name: 'flow/all', ...composition.compile() }, true)
  assert.deepEqual(await run('flow/all', { value: true }), { namespace: 'guest', x: 1 }) // a conductor is given its parameters each time
  assert.deepEqual(await run('flow2/all', {}), { x: 2 })
})

test('a function invokes packaged actions and fires triggers', async () => {
  await ow.packages.update({ name: 'calls', package: { parameters: [{ key: 'x', value: 1 }] } })
  await ow.actions.update({ name: 'calls/callee', ...python })
  await ow.triggers.update({ name: 'called' })
  await ow.rules.update({ name: 'calling', trigger: 'called', action: 'calls/callee' })
  const action = `const openwhisk = require('openwhisk')
async function main () {
  const ow = openwhisk()
  const result = await ow.actions.invoke({ name: 'calls/callee', blocking: true, result: true })
  const { activationId } = await ow.triggers.invoke({ name: 'called', params: { y: 2 } })
  return { result, activationId }
}`
  await ow.actions.update({ name: 'calls/caller', action, kind: 'nodejs:default' })
  const { result, activationId } = await run('calls/caller', {})
  assert.deepEqual(result, { x: 1 })
  const [line] = (await ow.activations.get(activationId)).logs
  const callee = await eventually(() => ow.activations.get(JSON.parse(line).activationId))
  assert.deepEqual(callee.response.result, { x: 1, y: 2 })
})

test('the public package is everybody’s to call and nobody’s to change', async () => {
  const listed = await ow.packages.list({ namespace: 'whisk.system' })
  assert.deepEqual(listed.map(p => [p.name, p.publish]), [['alarms', true], ['utils', true]])
  const utils = await ow.packages.get({ name: 'utils', namespace: 'whisk.system' })
  assert.deepEqual(utils.actions.map(a => a.name).sort(), ['cat', 'date', 'echo', 'head', 'hosturl', 'namespace', 'smash', 'sort', 'split'])
  assert.deepEqual(await run('/whisk.system/utils/echo', { a: 1 }), { a: 1 })
  assert.deepEqual(await run('/whisk.system/utils/split', { payload: 'a,b', separator: ',' }), { lines: ['a', 'b'], payload: 'a,b' })
  assert.deepEqual(await run('/whisk.system/utils/head', { lines: [1, 2, 3], num: 2 }), { lines: [1, 2], num: 2 })
  assert.deepEqual(await run('/whisk.system/utils/namespace', {}), { namespace: 'guest' })
  assert.deepEqual(await run('/whisk.system/utils/smash', { $fieldName: 'x', a: 1 }), { x: { a: 1 } })
  assert.ok(Math.abs(Date.parse((await run('/whisk.system/utils/date', {})).date) - Date.now()) < 60000)
  const { url } = await run('/whisk.system/utils/hosturl', { path: 'echo', web: true, ext: '.text' })
  assert.match(url, /\/api\/v1\/web\/guest\/default\/echo\.text$/)
  await assert.rejects(ow.actions.update({ name: '/whisk.system/utils/echo', ...python }), { statusCode: 403 })
  await assert.rejects(ow.packages.delete({ name: 'utils', namespace: 'whisk.system' }), { statusCode: 403 })
  await ow.packages.update({ name: 'mine', package: { binding: { namespace: 'whisk.system', name: 'utils' }, parameters: [{ key: 'num', value: 2 }] } })
  assert.deepEqual(await run('mine/head', { lines: [1, 2, 3] }), { lines: [1, 2], num: 2 })
})

test('a trigger fires the actions of its active rules', async () => {
  await ow.triggers.create({ name: 'landed', trigger: { parameters: [{ key: 'airport', value: 'TRN' }, { key: 'late', value: false }] } })
  await assert.rejects(ow.triggers.create({ name: 'landed' }), { statusCode: 409 })
  assert.ok((await ow.triggers.list()).some(t => t.name === 'landed'))
  assert.equal((await ow.triggers.invoke({ name: 'landed', params: {} })).length, 0, 'no rule: nothing to tell')
  await ow.actions.update({ name: 'note', ...python, params: { by: 'note' } })
  const rule = await ow.rules.create({ name: 'noted', trigger: 'landed', action: 'note' })
  assert.deepEqual([rule.status, rule.trigger, rule.action], ['active', { path: 'guest', name: 'landed' }, { path: 'guest', name: 'note' }])
  await ow.rules.create({ name: 'echoed', trigger: '/_/landed', action: '/whisk.system/utils/echo' })
  await ow.rules.disable({ name: 'echoed' })
  assert.equal((await ow.rules.get('echoed')).status, 'inactive')
  const { activationId } = await ow.triggers.invoke({ name: 'landed', params: { late: true } })
  const fired = await ow.activations.get(activationId)
  assert.deepEqual([fired.name, fired.response.result, fired.annotations, fired.end], ['landed', { late: true }, [], undefined])
  const [off, on] = fired.logs.map(line => JSON.parse(line))
  assert.deepEqual(off, {
    statusCode: 1, success: false, rule: 'guest/echoed', action: 'whisk.system/utils/echo',
    error: "Rule 'guest/echoed' is inactive, action 'whisk.system/utils/echo' was not activated."
  })
  assert.deepEqual({ ...on, activationId: '' }, { statusCode: 0, success: true, rule: 'guest/noted', action: 'guest/note', activationId: '' })
  const noted = await eventually(() => ow.activations.get(on.activationId))
  assert.deepEqual(noted.response.result, { airport: 'TRN', late: true, by: 'note' })
  assert.equal(noted.cause, undefined)
  assert.deepEqual((await ow.triggers.get('landed')).rules, {
    'guest/echoed': { action: { name: 'echo', path: 'whisk.system/utils' }, status: 'inactive' },
    'guest/noted': { action: { name: 'note', path: 'guest' }, status: 'active' }
  })
})

test('a rule follows its trigger', async () => {
  for (const name of ['one', 'two']) await ow.triggers.create({ name })
  await ow.actions.update({ name: 'act', ...python })
  await assert.rejects(ow.rules.create({ name: 'tie', trigger: 'none', action: 'act' }), { statusCode: 400 })
  await assert.rejects(ow.rules.create({ name: 'tie', trigger: 'one', action: 'none' }), { statusCode: 400 })
  await ow.rules.create({ name: 'tie', trigger: 'one', action: 'act' })
  const moved = await ow.rules.update({ name: 'tie', trigger: 'two', action: 'act' })
  assert.deepEqual([moved.status, moved.trigger.name, moved.version], ['active', 'two', '0.0.2'])
  assert.deepEqual((await ow.triggers.get('one')).rules, {})
  await ow.triggers.delete('two')
  assert.equal((await ow.rules.get('tie')).status, 'inactive')
  await assert.rejects(ow.rules.enable({ name: 'tie' }), { statusCode: 404 })
  await ow.triggers.create({ name: 'two' })
  await ow.rules.enable({ name: 'tie' })
  assert.equal((await ow.rules.get('tie')).status, 'active')
  assert.ok((await ow.rules.list()).some(r => r.name === 'tie' && r.action.name === 'act'))
  await ow.actions.delete('act')
  const { activationId } = await ow.triggers.invoke({ name: 'two' })
  const [line] = (await ow.activations.logs({ name: activationId })).logs
  assert.deepEqual(JSON.parse(line), { statusCode: 1, success: false, rule: 'guest/tie', action: 'guest/act', error: 'The requested resource does not exist.' })
  assert.equal((await ow.rules.delete('tie')).status, 'inactive')
  assert.deepEqual((await ow.triggers.get('two')).rules, {})
})

test('a feed is told of its trigger’s life', async () => {
  await ow.packages.update({ name: 'clock' })
  await ow.actions.update({ name: 'clock/alarm', ...python, annotations: { feed: true } })
  const { actions, feeds } = await ow.packages.get('clock')
  assert.deepEqual([actions.length, feeds.map(f => f.name)], [0, ['alarm']])
  await ow.triggers.create({ name: 'hourly', trigger: { annotations: [{ key: 'feed', value: '/guest/clock/alarm' }] } })
  await assert.rejects(ow.triggers.create({ name: 'never', trigger: { annotations: [{ key: 'feed', value: 7 }] } }), { statusCode: 400 })
  const told = await ow.feeds.create({ name: '/guest/clock/alarm', trigger: 'hourly', params: { cron: '0 * * * *' } })
  assert.deepEqual(told.response.result, { lifecycleEvent: 'CREATE', triggerName: '/_/hourly', authKey: props.api_key, cron: '0 * * * *' })
  assert.equal((await ow.feeds.delete({ name: '/guest/clock/alarm', trigger: 'hourly' })).response.result.lifecycleEvent, 'DELETE')
})

test('the feeds of /whisk.system/alarms keep timers', async () => {
  const alarm = { name: '/whisk.system/alarms/alarm', trigger: 'nightly' }
  const { feeds } = await ow.packages.get({ name: 'alarms', namespace: 'whisk.system' })
  assert.deepEqual(feeds.map(f => f.name).sort(), ['alarm', 'interval', 'once'])
  await assert.rejects(ow.feeds.create({ ...alarm, params: { cron: '0 3 * * *' } }), refusedWith(/does not exist/))
  await ow.triggers.create({ name: 'nightly' })
  for (const [params, reason] of [
    [{}, /missing the cron parameter/], [{ cron: '0 0 31 2 *' }, /none of its months has one of its days/],
    [{ cron: '0 0 * * 5-1' }, /the range 5-1 ends before it begins/], [{ cron: '0 3 * * *', timezone: 'Nowhere' }, /timezone 'Nowhere' is not known/]
  ]) await assert.rejects(ow.feeds.create({ ...alarm, params }), refusedWith(reason))
  await assert.rejects(ow.feeds.get(alarm), refusedWith(/could not find trigger \/guest\/nightly/))
  const created = await ow.feeds.create({ ...alarm, params: { cron: '0 3 * * *', timezone: 'Europe/Berlin', trigger_payload: { a: 1 } } })
  assert.deepEqual(created.response.result, { status: 'success' })
  await ow.feeds.update({ ...alarm, params: { cron: '0 4 * * *' } })
  const { config, status } = (await ow.feeds.get(alarm)).response.result
  assert.deepEqual(config, { name: 'nightly', namespace: 'guest', payload: { a: 1 }, cron: '0 4 * * *', timezone: 'Europe/Berlin', strict: true })
  assert.equal(status.active, true)
  assert.match(status.nextFire, /T0[23]:00:00\.000Z$/)
  await ow.feeds.delete(alarm)
  await assert.rejects(ow.feeds.get(alarm), refusedWith(/could not find trigger/))
  await ow.triggers.delete('nightly')
  await ow.feeds.delete(alarm) // as wsk does: the trigger first
})

/**
 * Tells whether a feed failed for a reason.
 * @param {RegExp} reason what its error says
 * @returns {(error: Error) => boolean} for assert.rejects
 */
function refusedWith (reason) {
  return error => {
    assert.match(error.error.response.result.error, reason)
    return true
  }
}

test('packages, triggers, rules and actions share their names', async () => {
  await ow.triggers.create({ name: 'taken' })
  await assert.rejects(ow.actions.create({ name: 'taken', ...python }), { statusCode: 409 })
  await assert.rejects(ow.packages.update({ name: 'taken' }), { statusCode: 409 })
  await assert.rejects(ow.rules.get('taken'), { statusCode: 409 })
})

test('activations are found by the package that they were called through', async () => {
  await ow.packages.update({ name: 'there' })
  await ow.actions.update({ name: 'there/it', ...python })
  await ow.packages.update({ name: 'here', package: { binding: { namespace: '_', name: 'there' } } })
  await run('there/it', {})
  await run('here/it', {})
  for (const name of ['there/it', 'here/it']) assert.equal((await ow.activations.list({ name })).length, 1, name)
  assert.equal((await ow.activations.list({ name: 'it' })).length, 0)
})

test('API routes are refused with a sentence', async () => {
  await assert.rejects(ow.routes.create({ action: 'note', basepath: '/v1', relpath: '/note', operation: 'get' }), error => {
    assert.equal(error.statusCode, 501)
    assert.match(error.message, /not part of Forerun.*\/api\/v1\/web\//)
    return true
  })
})

/**
 * Asks until there is an answer.
 * @param {() => Promise<object>} ask what to try
 * @returns {Promise<object>} its first answer
 */
async function eventually (ask) {
  for (const end = Date.now() + 120000; ;) {
    try {
      return await ask()
    } catch (error) {
      if (Date.now() > end) throw error
    }
  }
}
