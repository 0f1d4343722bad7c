// The npm client openwhisk, unchanged, against a running server.
import assert from 'node:assert/strict'
import test from 'node:test'

import openwhisk from 'openwhisk'

import { readProps } from '../../examples/wskprops.js'

const props = readProps(process.env.WSK_CONFIG_FILE)
const ow = openwhisk(props)
const greet = 'def main(args):\n    print("greeting", args["name"])\n    return {"greeting": "Hello " + args["name"] + "!"}\n'

test('an action is created, read, listed, updated and deleted', async () => {
  const created = await ow.actions.create({ name: 'life', action: greet, kind: 'python:3', annotations: { 'web-export': false }, params: { name: 'nobody' } })
  assert.equal(created.name, 'life')
  assert.equal(created.version, '0.0.1')
  assert.equal(created.exec.kind, 'python:3')
  const read = await ow.actions.get('life')
  assert.equal(read.exec.code, greet)
  assert.deepEqual(read.parameters, [{ key: 'name', value: 'nobody' }])
  assert.deepEqual(read.limits, { timeout: 60000, memory: 256, logs: 10, concurrency: 1 })
  assert.ok((await ow.actions.list()).some(a => a.name === 'life'))
  const updated = await ow.actions.update({ name: 'life', action: greet, kind: 'python:3' })
  assert.equal(updated.version, '0.0.2')
  await ow.actions.delete('life')
  await assert.rejects(ow.actions.get('life'), { statusCode: 404 })
})

test('an action that is there is not created again', async () => {
  await ow.actions.create({ name: 'twice', action: greet, kind: 'python:3' })
  await assert.rejects(ow.actions.create({ name: 'twice', action: greet, kind: 'python:3' }), { statusCode: 409 })
})

test('a blocking invocation gives the record, or the result alone', async () => {
  await ow.actions.update({ name: 'greet', action: greet, kind: 'python:3' })
  const record = await ow.actions.invoke({ name: 'greet', params: { name: 'Ada' }, blocking: true })
  assert.deepEqual(record.response.result, { greeting: 'Hello Ada!' })
  assert.equal(record.response.status, 'success')
  assert.equal(record.response.success, true)
  const result = await ow.actions.invoke({ name: 'greet', params: { name: 'Eve' }, blocking: true, result: true })
  assert.deepEqual(result, { greeting: 'Hello Eve!' })
})

test('an invocation that is not waited for has its record later', async () => {
  await ow.actions.update({ name: 'later', action: greet, kind: 'python:3' })
  const { activationId } = await ow.actions.invoke({ name: 'later', params: { name: 'Ada' } })
  assert.match(activationId, /^[0-9a-f]{32}$/)
  const record = await eventually(() => ow.activations.get({ name: activationId }))
  assert.deepEqual(record.response.result, { greeting: 'Hello Ada!' })
})

test('records, results and logs are found again', async () => {
  await ow.actions.update({ name: 'logged', action: greet, kind: 'python:3' })
  const { activationId } = await ow.actions.invoke({ name: 'logged', params: { name: 'Ada' }, blocking: true })
  const { logs } = await ow.activations.logs({ name: activationId })
  assert.equal(logs.length, 1)
  assert.match(logs[0], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z +stdout: greeting Ada$/)
  assert.deepEqual((await ow.activations.result({ name: activationId })).result, { greeting: 'Hello Ada!' })
  const list = await ow.activations.list({ limit: 200 })
  assert.ok(list.some(a => a.activationId === activationId && a.name === 'logged'))
})

test('defaults are bound parameters, under those of the request', async () => {
  await ow.actions.update({ name: 'bound', action: greet, kind: 'python:3', params: { name: 'default' } })
  const invoke = params => ow.actions.invoke({ name: 'bound', params, blocking: true, result: true })
  assert.deepEqual(await invoke({}), { greeting: 'Hello default!' })
  assert.deepEqual(await invoke({ name: 'given' }), { greeting: 'Hello given!' })
})

test('what a function does wrong is told with its status', async () => {
  const broken = {
    said: ['def main(args):\n    return {"error": "no such user"}\n', 'application error', /no such user/],
    raised: ['def main(args):\n    raise ValueError("bad")\n', 'action developer error', /./],
    unloadable: ['def main(args:\n', 'action developer error', /./],
    nothing: ['def main(args):\n    return 7\n', 'action developer error', /./]
  }
  for (const [name, [action, status, message]] of Object.entries(broken)) {
    await ow.actions.update({ name, action, kind: 'python:3' })
    await assert.rejects(ow.actions.invoke({ name, blocking: true }), error => {
      assert.equal(error.statusCode, 502, name)
      assert.equal(error.error.response.status, status, name)
      assert.match(JSON.stringify(error.error.response.result.error), message, name)
      return true
    })
  }
})

test('an action may not run longer than its limit', async () => {
  const action = 'import time\ndef main(args):\n    time.sleep(60)\n'
  await ow.actions.update({ name: 'slow', kind: 'python:3', action, limits: { timeout: 200 } })
  await assert.rejects(ow.actions.invoke({ name: 'slow', blocking: true }), error => {
    assert.equal(error.statusCode, 502)
    assert.match(JSON.stringify(error.error.response.result), /exceeded its time limits of 200 milliseconds/)
    return true
  })
})

test('a wrong key is refused', async () => {
  const stranger = openwhisk({ ...props, api_key: '23bc46b1-71f6-4ed5-8c54-816aa4f8c502:' + 'x'.repeat(64) })
  await assert.rejects(stranger.actions.list(), { statusCode: 401 })
})

test('a sequence hands each result on', async () => {
  await ow.actions.update({ name: 'add', action: 'def main(args):\n    return {"n": args["n"] + 1}\n', kind: 'python:3' })
  await ow.actions.update({ name: 'double', action: 'def main(args):\n    return {"n": args["n"] * 2}\n', kind: 'python:3' })
  await ow.actions.update({ name: 'chain', sequence: ['/_/add', '/_/double', '/_/add'] })
  const record = await ow.actions.invoke({ name: 'chain', params: { n: 3 }, blocking: true })
  assert.deepEqual(record.response.result, { n: 9 })
  const parts = await Promise.all(record.logs.map(id => ow.activations.get({ name: id })))
  assert.deepEqual(parts.map(p => p.name), ['add', 'double', 'add'])
  assert.ok(parts.every(p => p.cause === record.activationId))
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
