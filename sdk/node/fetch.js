'use strict'
// fetch of the platform, over the connections of exchange.js.

const { parseHost, send } = require('./exchange.js')
const { find } = require('./settings.js')

const TIMEOUT = 90_000 // milliseconds; the API waits at most 60 s
const KEYED = '/api/v1/namespaces' // below it a key is needed
const OURS = ['method', 'headers', 'body']

/**
 * Fetches from the platform: a path that begins with a slash, or a URL with its address. Other addresses, and calls with other options, are the
 * global fetch's.
 * @param {string | URL} resource - what to fetch
 * @param {{method?: string, headers?: object, body?: string | Uint8Array}} [options] - of the request
 * @returns {Promise<Response>} the answer
 */
async function fetch (resource, options = {}) {
  const text = String(resource)
  const found = platform(text)
  const plain = Object.keys(options).every(name => OURS.includes(name)) && isPlain(options.body)
  if (!found || !plain) return globalThis.fetch(found && text.startsWith('/') ? new URL(text, found.url) : resource, options)
  const { url, auth, ca } = found
  const { pathname, search } = new URL(text, url)
  const headers = Object.fromEntries(new Headers(options.headers))
  if (headers.authorization === undefined && pathname.startsWith(KEYED)) headers.authorization = `Basic ${Buffer.from(auth).toString('base64')}`
  const { authorization, ...others } = headers
  const answer = await send(url, {
    method: (options.method ?? 'GET').toUpperCase(),
    path: pathname + search,
    headers: { ...others, ...(authorization === undefined ? {} : { Authorization: authorization }) },
    body: options.body ?? '',
    timeout: TIMEOUT,
    ca
  })
  const kept = new Headers()
  for (const [name, value] of Object.entries(answer.headers)) {
    for (const one of [value].flat()) kept.append(name, one)
  }
  return new Response([204, 205, 304].includes(answer.status) ? null : answer.content, { status: answer.status, headers: kept })
}

function isPlain (body) {
  return body === undefined || body === null || typeof body === 'string' || body instanceof Uint8Array
}

/**
 * Finds the platform, if a resource is one of it.
 * @param {string} text - the resource
 * @returns {{url: URL, auth: string, ca?: string} | undefined} how it is called
 */
function platform (text) {
  let found
  try {
    found = find({})
  } catch (error) {
    if (text.startsWith('/')) throw error
    return undefined
  }
  const url = parseHost(found.host)
  const ours = text.startsWith('/') || (URL.canParse?.(text) ?? true) && new URL(text).origin === url.origin
  return ours ? { url, auth: found.auth, ca: found.ca } : undefined
}

module.exports = { fetch }
