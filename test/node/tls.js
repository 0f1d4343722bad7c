// The npm client openwhisk, unchanged, against a server with TLS, whose authority NODE_EXTRA_CA_CERTS names.
import assert from 'node:assert/strict'
import test from 'node:test'

import openwhisk from 'openwhisk'

import { readProps } from '../../examples/wskprops.js'

test('an action is invoked over https', async () => {
  const props = readProps(process.env.WSK_CONFIG_FILE)
  assert.match(props.apihost, /^https:/)
  const result = await openwhisk(props).actions.invoke({ name: 'hello', params: { name: 'Ada' }, blocking: true, result: true })
  assert.deepEqual(result, { greeting: 'Hello Ada' })
})
