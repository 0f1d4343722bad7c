// The client forerun against a server with TLS, whose authority lies beside the settings.
import assert from 'node:assert/strict'
import test from 'node:test'

import forerun from '../../sdk/node/index.js'

test('invocations and fetches share a connection of HTTP/2', async () => {
  const counted = async () => Number(/^forerun_requests_http2_total (\d+)$/m.exec(await (await forerun.fetch('/metrics')).text())?.[1])
  const before = await counted()
  for (let n = 0; n < 3; n++) {
    assert.deepEqual(await forerun.invoke('hello', { name: 'Ada' }), { greeting: 'Hello Ada' })
  }
  const listed = await forerun.fetch('/api/v1/namespaces/_/actions')
  assert.deepEqual([listed.status, (await listed.json()).map(action => action.name).includes('hello')], [200, true])
  await assert.rejects(forerun.invoke('absent'), forerun.NotFound)
  assert.ok(await counted() >= before + 5)
})

test('an authority that is not the server\'s is refused', async () => {
  process.env.FORERUN_CA = process.env.OTHER_CA
  await assert.rejects(forerun.invoke('hello', {}), error => error instanceof forerun.ConnectionFailed && /FORERUN_CA/.test(error.message))
})
