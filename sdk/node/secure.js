'use strict'
// Exchanges over TLS: HTTP/2 on a kept session for each server and key, or HTTP/1.1 if the server has nothing else.

const http2 = require('node:http2')
const https = require('node:https')
const tls = require('node:tls')

const { exchange, read, timedOut } = require('./exchange.js')

const sessions = new Map() // by server, key and authorities: promises of HTTP/2 sessions, or of agents for HTTP/1.1
const REFUSED = http2.constants.NGHTTP2_REFUSED_STREAM // the server has not looked at the request

/**
 * Sends one request and reads its answer, as exchange.js does.
 * @param {URL} url - of the server
 * @param {object} request - as there
 * @returns {Promise<{status: number, headers: object, content: Buffer}>} the answer
 */
async function send (url, request) {
  const key = [url.origin, request.headers.Authorization, request.ca].join('\n')
  const kept = sessions.has(key)
  if (!kept) {
    const made = connect(url, request, () => sessions.delete(key))
    sessions.set(key, made)
    made.catch(() => sessions.delete(key))
  }
  const found = await sessions.get(key)
  if (found instanceof https.Agent) return exchange(https, found, url, request)
  try {
    return await ask(found, url, request)
  } catch (error) {
    throw Object.assign(error, { stale: kept && (found.destroyed || found.closed) || error.refused })
  }
}

/**
 * Connects, and sees which protocol the server speaks.
 * @param {URL} url - of the server
 * @param {{ca?: string, timeout: number}} request - for which it connects
 * @param {() => void} ended - is called when the session takes no more requests
 * @returns {Promise<http2.ClientHttp2Session | https.Agent>} what carries requests
 */
function connect (url, { ca, timeout }, ended) {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const authorities = ca ? [...tls.rootCertificates, ca] : undefined
  return new Promise((resolve, reject) => {
    const socket = tls.connect({
      host, port: Number(url.port || 443), ca: authorities, timeout, ALPNProtocols: ['h2', 'http/1.1'],
      ...(require('node:net').isIP(host) ? {} : { servername: host })
    })
    socket.once('timeout', () => socket.destroy(timedOut(timeout)))
    socket.once('error', reject)
    socket.once('secureConnect', () => {
      socket.setTimeout(0)
      if (socket.alpnProtocol !== 'h2') {
        socket.destroy()
        resolve(new https.Agent({ keepAlive: true, ca: authorities }))
        return
      }
      const session = http2.connect(url.origin, { createConnection: () => socket })
      session.on('error', ended) // each request tells of it
      session.on('goaway', ended)
      session.on('close', ended)
      session.unref()
      resolve(session)
    })
  })
}

const running = new WeakMap() // requests, by session

// begin has the process wait for an answer.
function begin (session) {
  const n = running.get(session) ?? 0
  running.set(session, n + 1)
  if (n === 0) session.ref()
}

function end (session) {
  const n = running.get(session) - 1
  running.set(session, n)
  if (n === 0 && !session.destroyed) session.unref()
}

function ask (session, url, { method, path, headers, body, timeout }) {
  return new Promise((resolve, reject) => {
    begin(session)
    const stream = session.request({
      ':method': method, ':path': path, ':authority': url.host,
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      'content-length': Buffer.byteLength(body)
    }, { endStream: body.length === 0 })
    stream.setTimeout(timeout, () => stream.destroy(timedOut(timeout)))
    stream.on('error', error => reject(Object.assign(error, { refused: stream.rstCode === REFUSED })))
    stream.on('close', () => {
      end(session)
      if (!answered) reject(new Error('the connection ended before it came'))
    })
    let answered = false
    stream.on('response', ({ ':status': status, ...rest }) => {
      answered = true
      read(stream).then(content => resolve({ status, headers: rest, content }), reject)
    })
    if (body.length > 0) stream.end(body)
  })
}

module.exports = { send }
