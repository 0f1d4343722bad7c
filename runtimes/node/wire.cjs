'use strict'
// Frames of the runtime protocol over a blocking descriptor (PROTOCOL.md, "Frames").

const fs = require('fs')

const INIT = 2
const INIT_DONE = 3
const READY = 16
const RUN = 17
const RESULT = 18

const PREFIX_BYTES = 8
const MAX_HEADER_BYTES = 1 << 20
const MAX_PAYLOAD_BYTES = 64 << 20
const SPACE_BYTES = 64 << 10

/**
 * One frame.
 * @typedef {object} Frame
 * @property {number} type - of the frame
 * @property {object} header - {} when absent
 * @property {string} payload - as text
 */

/** One end of a connection. It is read only on request, and the process sleeps in the kernel meanwhile. */
class Connection {
  #fd
  #space = Buffer.allocUnsafeSlow(SPACE_BYTES)
  #start = 0 // what was read and not consumed
  #end = 0
  #out = Buffer.allocUnsafeSlow(SPACE_BYTES)

  /** @param {number} fd - a connected stream socket, in blocking mode */
  constructor (fd) {
    this.#fd = fd
  }

  /**
   * Wait for the next frame.
   * @returns {Frame | null} null at the end of the stream
   */
  read () {
    if (!this.#fill(PREFIX_BYTES)) {
      if (this.#end > this.#start) throw truncated()
      return null
    }
    const at = this.#start
    const type = this.#space[at]
    const headerBytes = this.#space.readUIntBE(at + 1, 3)
    const payloadBytes = this.#space.readUInt32BE(at + 4)
    if (headerBytes > MAX_HEADER_BYTES || payloadBytes > MAX_PAYLOAD_BYTES) {
      throw new RangeError(`a frame of ${headerBytes} + ${payloadBytes} bytes is over the protocol's limits`)
    }
    this.#start += PREFIX_BYTES
    const body = this.#take(headerBytes + payloadBytes)
    const header = headerBytes > 0 ? parse(body.toString('utf8', 0, headerBytes)) : {}
    return { type, header, payload: body.toString('utf8', headerBytes) }
  }

  /**
   * Write a frame. Its header, an object's JSON, is ASCII.
   * @param {number} type - of the frame
   * @param {string} header - JSON, or empty
   * @param {string} payload - text
   */
  write (type, header, payload) {
    const bound = PREFIX_BYTES + 3 * (header.length + payload.length)
    const out = bound <= SPACE_BYTES ? this.#out : Buffer.allocUnsafeSlow(PREFIX_BYTES + Buffer.byteLength(header) + Buffer.byteLength(payload))
    const headerBytes = out.write(header, PREFIX_BYTES)
    const payloadBytes = out.write(payload, PREFIX_BYTES + headerBytes)
    out[0] = type
    out.writeUIntBE(headerBytes, 1, 3)
    out.writeUInt32BE(payloadBytes, 4)
    writeAll(this.#fd, out, PREFIX_BYTES + headerBytes + payloadBytes)
  }

  /**
   * Read until so many bytes, which fit into the space, are there.
   * @param {number} size - in bytes
   * @returns {boolean} false at the end of the stream
   */
  #fill (size) {
    if (this.#end - this.#start < size && this.#start > 0) {
      this.#space.copy(this.#space, 0, this.#start, this.#end)
      this.#end -= this.#start
      this.#start = 0
    }
    while (this.#end - this.#start < size) {
      const n = readSome(this.#fd, this.#space, this.#end)
      if (n === 0) return false
      this.#end += n
    }
    return true
  }

  /**
   * Consume bytes.
   * @param {number} size - in bytes
   * @returns {Buffer} valid until the next read
   */
  #take (size) {
    if (size <= SPACE_BYTES) {
      if (!this.#fill(size)) throw truncated()
      this.#start += size
      return this.#space.subarray(this.#start - size, this.#start)
    }
    const body = Buffer.allocUnsafeSlow(size)
    let have = this.#space.copy(body, 0, this.#start, this.#end)
    this.#start = this.#end = 0
    while (have < size) {
      const n = readSome(this.#fd, body, have)
      if (n === 0) throw truncated()
      have += n
    }
    return body
  }
}

function truncated () {
  return new Error('the stream ended within a frame')
}

function parse (text) {
  let header
  try {
    header = JSON.parse(text)
  } catch (error) {
    throw new SyntaxError(`the header of a frame is not JSON: ${error.message}`)
  }
  if (typeof header !== 'object' || header === null || Array.isArray(header)) throw new TypeError('the header of a frame is not an object')
  return header
}

function readSome (fd, buffer, at) {
  for (;;) {
    try {
      return fs.readSync(fd, buffer, at, buffer.length - at, null)
    } catch (error) {
      if (error.code === 'ECONNRESET') return 0 // the server went with something of ours unread
      if (error.code !== 'EINTR') throw error
    }
  }
}

/**
 * Write all bytes to a descriptor.
 * @param {number} fd - the descriptor
 * @param {Uint8Array} data - the bytes
 * @param {number} size - how many of them
 */
function writeAll (fd, data, size) {
  for (let at = 0; at < size;) {
    try {
      at += fs.writeSync(fd, data, at, size - at)
    } catch (error) {
      if (error.code === 'EAGAIN') wait() // another process made the pipe that it shares with us non-blocking
      else if (error.code !== 'EINTR') throw error
    }
  }
}

function wait () {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
}

module.exports = { Connection, writeAll, INIT, INIT_DONE, READY, RUN, RESULT }
