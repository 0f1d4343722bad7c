// Holds wire.cjs against the protocol's byte vectors, through files: a descriptor is a descriptor.

import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import wire from '../wire.cjs'

const { frames, refused } = JSON.parse(fs.readFileSync(new URL('../../testdata/vectors.json', import.meta.url), 'utf8'))
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'wire-'))
after(() => fs.rmSync(folder, { recursive: true }))

/**
 * Open a connection on a file.
 * @param {Buffer} content - what is read from it
 * @returns {{connection: wire.Connection, name: string, fd: number}} the connection, on the descriptor of the named file
 */
function open (content) {
  const name = path.join(folder, 'stream')
  fs.writeFileSync(name, content)
  const fd = fs.openSync(name, 'r+')
  return { connection: new wire.Connection(fd), name, fd }
}

const isText = hex => Buffer.from(Buffer.from(hex, 'hex').toString()).toString('hex') === hex

for (const { name, type, header, payload, bytes } of frames.filter(frame => isText(frame.payload))) {
  test(name, () => {
    const { connection, name: file, fd } = open(Buffer.from(bytes + bytes, 'hex'))
    for (let i = 0; i < 2; i++) {
      const frame = connection.read()
      assert.equal(frame.type, type)
      assert.deepEqual(frame.header, header ?? {})
      assert.equal(Buffer.from(frame.payload).toString('hex'), payload)
    }
    assert.equal(connection.read(), null)
    const sorted = Object.fromEntries(Object.entries(header ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)))
    if (Object.values(sorted).every(value => typeof value !== 'object')) {
      fs.ftruncateSync(fd)
      const { connection } = open(Buffer.alloc(0))
      const text = bytes.startsWith('000000', 2) ? '' : JSON.stringify(sorted)
      connection.write(type, text, Buffer.from(payload, 'hex').toString())
      assert.equal(fs.readFileSync(file).toString('hex'), bytes)
    }
  })
}

for (const { name, why, bytes } of refused) {
  test(name, () => {
    const { connection } = open(Buffer.from(bytes, 'hex'))
    const message = { truncated: /ended within a frame/, 'too large': /over the protocol's limits/, header: /header/ }[why]
    assert.throws(() => connection.read(), message)
  })
}

test('a frame larger than the space', () => {
  const { connection, name } = open(Buffer.alloc(0))
  const text = 'é☃'.repeat(100_000)
  connection.write(wire.RESULT, '{"status":"ok"}', text)
  const frame = new wire.Connection(fs.openSync(name)).read()
  assert.deepEqual(frame, { type: wire.RESULT, header: { status: 'ok' }, payload: text })
})
