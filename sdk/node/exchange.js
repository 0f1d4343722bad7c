'use strict'
// One HTTP exchange over a connection of its own, so that no request is ever sent twice, or on a connection that ends.

const http = require('node:http')

const { ConnectionFailed, SettingsError } = require('./errors.js')

const MAX_BODY = 1 << 26

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
 * Sends one request and reads its answer.
 * @param {URL} url - of the server
 * @param {{method: string, path: string, headers: object, body: string, timeout: number}} request - timeout in
 * milliseconds, for each wait on the network
 * @returns {Promise<{status: number, headers: object, body: string}>} the answer
 */
function send (url, { method, path, headers, body, timeout }) {
  const { request } = url.protocol === 'https:' ? require('node:https') : http
  const where = `the API at ${url.host}`
  return new Promise((resolve, reject) => {
    const fail = error => reject(new ConnectionFailed(sentence(error, where)))
    const sent = request({
      hostname: url.hostname.replace(/^\[|\]$/g, ''), port: url.port, method, path, timeout, agent: false,
      headers: { ...headers, 'Content-Length': Buffer.byteLength(body) }
    }, response => read(response).then(resolve, fail))
    sent.on('timeout', () => sent.destroy(Object.assign(new Error(`no answer within ${timeout} ms`), { code: 'ETIMEDOUT' })))
    sent.on('error', fail)
    sent.end(body)
  })
}

async function read (response) {
  const parts = []
  let size = 0
  for await (const part of response) {
    parts.push(part)
    if ((size += part.length) > MAX_BODY) throw new Error(`it is longer than ${MAX_BODY} bytes`)
  }
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(parts).toString() }
}

function sentence (error, where) {
  if (error.code === 'ETIMEDOUT') return `There was no answer in time from ${where}: give new Client(...) a longer timeout.`
  if (error.syscall) return `There is no connection to ${where}: ${error.message}. Does the server run there?`
  return `The answer of ${where} cannot be read: ${error.message}. Is it OpenWhisk's API?`
}

module.exports = { parseHost, send }
