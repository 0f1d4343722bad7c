'use strict'
// One exchange with the API: HTTP/1.1 where the address is http, else HTTP/2, or HTTP/1.1 over TLS if the server has no HTTP/2. Connections are kept.

const http = require('node:http')

const { ConnectionFailed, SettingsError, TimedOut } = require('./errors.js')

const MAX_BODY = 1 << 26
const SPARE = 8 // idle connections to a server

const agent = new http.Agent({ keepAlive: true, maxFreeSockets: SPARE })

/**
 * Reads http://HOST:PORT, https://HOST:PORT, or HOST:PORT, which means https as in wsk.
 * @param {string} text - the API host
 * @returns {URL} the address
 */
function parseHost (text) {
  let url
  try {
    url = new URL(text.includes('://') ? text : `https://${text}`)
  } catch { /* told below */ }
  if (!url?.hostname || !['http:', 'https:'].includes(url.protocol) || url.pathname !== '/' || url.search || url.port === '0') {
    throw new SettingsError(`'${text}' is not where an API can be: write it like http://127.0.0.1:3233.`)
  }
  return url
}

/**
 * Sends one request and reads its answer. A request whose kept connection ended before its answer is sent again only if the server carries it out
 * once in effect.
 * @param {URL} url - of the server
 * @param {{method: string, path: string, headers: object, body: string | Uint8Array, timeout: number, ca?: string}} request - timeout in
 * milliseconds, for each wait on the network; ca is certificate authorities to trust beside the system's, in PEM
 * @returns {Promise<{status: number, headers: object, content: Buffer}>} the answer
 */
async function send (url, request) {
  const once = () => url.protocol === 'https:' ? require('./secure.js').send(url, request) : exchange(http, agent, url, request)
  try {
    try {
      return await once()
    } catch (error) {
      if (!error.stale || !isRepeatable(request)) throw error
      return await once()
    }
  } catch (error) {
    throw worded(error, `the API at ${url.host}`, request.timeout)
  }
}

function isRepeatable ({ method, headers }) {
  return ['GET', 'HEAD'].includes(method) || Object.keys(headers).some(name => name.toLowerCase() === 'idempotency-key')
}

/**
 * Exchanges a request and its answer over HTTP/1.1.
 * @param {object} over - node:http or node:https
 * @param {http.Agent} pool - of connections
 * @param {URL} url - of the server
 * @param {{method: string, path: string, headers: object, body: string | Uint8Array, timeout: number}} request - as in send
 * @returns {Promise<{status: number, headers: object, content: Buffer}>} the answer
 */
function exchange (over, pool, url, { method, path, headers, body, timeout }) {
  return new Promise((resolve, reject) => {
    const sent = over.request({
      hostname: url.hostname.replace(/^\[|\]$/g, ''), port: url.port, method, path, timeout, agent: pool,
      headers: { ...headers, 'Content-Length': Buffer.byteLength(body) }
    }, response => {
      read(response).then(content => resolve({ status: response.statusCode, headers: response.headers, content }), reject)
    })
    sent.on('timeout', () => sent.destroy(timedOut(timeout)))
    sent.on('error', error => reject(Object.assign(error, { stale: sent.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code) })))
    sent.end(body)
  })
}

/**
 * Reads a body.
 * @param {import('node:stream').Readable} stream - that gives it
 * @returns {Promise<Buffer>} the whole
 */
async function read (stream) {
  const parts = []
  let size = 0
  for await (const part of stream) {
    parts.push(part)
    if ((size += part.length) > MAX_BODY) throw new Error(`it is longer than ${MAX_BODY} bytes`)
  }
  return Buffer.concat(parts)
}

/**
 * Makes the error of an answer that took too long.
 * @param {number} timeout - in milliseconds
 * @returns {Error} the error
 */
function timedOut (timeout) {
  return Object.assign(new Error(`no answer within ${timeout} ms`), { code: 'ETIMEDOUT' })
}

function worded (error, where) {
  if (error.code === 'ETIMEDOUT') return new TimedOut(`There was no answer in time from ${where}: give new Client(...) a longer timeout.`)
  if (error.syscall || error.code?.startsWith('ERR_TLS') || error.code?.includes('CERT')) {
    return new ConnectionFailed(`There is no connection to ${where}: ${error.message}. Does the server run there, and is its authority in FORERUN_CA?`)
  }
  return new ConnectionFailed(`The answer of ${where} cannot be read: ${error.message}. Is it OpenWhisk's API?`)
}

module.exports = { exchange, parseHost, read, send, timedOut }
