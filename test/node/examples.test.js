// examples: an invocation that is answered 202, because it takes longer than a request waits, ends with its record or with its error.
import assert from 'node:assert/strict'
import test from 'node:test'

import { invoke } from '../../examples/invoke.js'

/**
 * Makes a client whose server answers 202, and then that there is no record yet, before it has one.
 * @param {object} response of the record
 * @returns {object} the client
 */
function slow (response) {
  let asked = 0
  return {
    actions: { invoke: async () => ({ activationId: 'id' }) },
    activations: {
      get: async ({ name }) => {
        if (++asked < 3) throw Object.assign(new Error('no record yet'), { statusCode: 404 })
        return { activationId: name, response }
      }
    }
  }
}

test('a slow invocation ends with its record', async () => {
  const record = await invoke(slow({ success: true, result: { n: 1 } }), 'book', {})
  assert.deepEqual([record.activationId, record.response.result], ['id', { n: 1 }])
})

test('a slow invocation that fails says why', async () => {
  await assert.rejects(invoke(slow({ success: false, result: { error: 'no seat' } }), 'book', {}), /book failed: .*no seat.* \(activation id\)/)
})

test('what the server refuses is not asked again', async () => {
  const client = slow({ success: true })
  client.activations.get = async () => { throw Object.assign(new Error('the key is not valid'), { statusCode: 401 }) }
  await assert.rejects(invoke(client, 'book', {}), /not valid/)
})
