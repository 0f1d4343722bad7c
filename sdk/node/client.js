'use strict'
// The client: actions, activations and triggers of one namespace.

const { ConnectionFailed, NotFinished, failure, refusal } = require('./errors.js')
const { parseHost, send } = require('./exchange.js')
const { find } = require('./settings.js')

const TIMEOUT = 90_000 // milliseconds; the API itself waits at most 60 s for a blocking invocation

class Client {
  #given
  #timeout

  constructor ({ host, auth, namespace, timeout = TIMEOUT } = {}) {
    this.#given = { host, auth, namespace }
    this.#timeout = timeout
    const request = (...of) => this.#request(...of)
    this.actions = new Actions(request)
    this.activations = new Activations(request)
    this.triggers = new Triggers(request)
  }

  /**
   * Sends one request: answers that tell of an action, 502 among them, are returned; what the API refuses is thrown.
   * @param {string} method - of HTTP
   * @param {string} target - like "actions/hello", or "/other/actions/hello" of another namespace
   * @param {{query?: object, body?: object, headers?: object}} [options] - of the request
   * @returns {Promise<{status: number, headers: object, body: string}>} the answer
   */
  async #request (method, target, { query = {}, body, headers } = {}) {
    const { host, auth, namespace: own, ca } = find(this.#given)
    const [namespace, ...rest] = target.startsWith('/') ? target.slice(1).split('/') : [own, ...target.split('/')]
    const path = `/api/v1/namespaces/${[namespace, ...rest].map(quote).join('/')}`
    const pairs = Object.entries(query).filter(([, value]) => value !== undefined).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    const { status, headers: fields, content } = await send(parseHost(host), {
      method,
      path: pairs.length > 0 ? `${path}?${pairs.join('&')}` : path,
      headers: {
        Authorization: `Basic ${Buffer.from(auth).toString('base64')}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers
      },
      body: body === undefined ? '' : JSON.stringify(body),
      timeout: this.#timeout,
      ca
    })
    const answer = { status, headers: fields, body: content.toString() }
    if (answer.status < 300 || answer.status === 502) return answer
    throw refusal(`${method} ${target}`, answer)
  }
}

class Actions {
  #request

  constructor (request) {
    this.#request = request
  }

  async invoke (name, params = {}, { blocking = true, wait, idempotencyKey } = {}) {
    const answer = await this.#request('POST', within('actions', name), {
      query: blocking ? { blocking: true, result: true, timeout: wait } : {},
      headers: idempotencyKey ? { 'Idempotency-Key': idempotencyKey } : {},
      body: params
    })
    const document = decode(answer)
    const { activationId } = document
    if (!blocking) return activationId
    if (answer.status === 202) {
      throw new NotFinished(`${name} still runs: later, activations.result('${activationId}') has its result.`, { activationId })
    }
    if (answer.status === 502) throw failure(name, document, answer.headers['x-openwhisk-activation-id'] ?? '')
    return document
  }

  async list ({ limit, skip } = {}) {
    return decode(await this.#request('GET', 'actions', { query: { limit, skip } }))
  }

  async get (name) {
    return decode(await this.#request('GET', within('actions', name)))
  }
}

class Activations {
  #request

  constructor (request) {
    this.#request = request
  }

  async list ({ name, limit, skip, since, upto, docs } = {}) {
    return decode(await this.#request('GET', 'activations', { query: { name, limit, skip, since, upto, docs } }))
  }

  async get (activationId) {
    return decode(await this.#request('GET', `activations/${activationId}`))
  }

  async logs (activationId) {
    return decode(await this.#request('GET', `activations/${activationId}/logs`)).logs
  }

  async result (activationId) {
    return decode(await this.#request('GET', `activations/${activationId}/result`)).result
  }
}

class Triggers {
  #request

  constructor (request) {
    this.#request = request
  }

  async fire (name, params = {}) {
    const answer = await this.#request('POST', within('triggers', name), { body: params })
    return answer.status === 204 ? null : decode(answer).activationId
  }
}

/**
 * Decodes the JSON document of an answer.
 * @param {{status: number, body: string}} answer - of the API
 * @returns {object} the document
 */
function decode ({ status, body }) {
  let document
  try {
    document = JSON.parse(body)
  } catch { /* told below */ }
  if (document === null || typeof document !== 'object') {
    throw new ConnectionFailed(`The answer of the API (status ${status}) is not a JSON object: is it OpenWhisk's API?`)
  }
  return document
}

/**
 * Puts a name of the form NAME, PACKAGE/NAME or /NAMESPACE/[PACKAGE/]NAME into the path of its collection.
 * @param {string} collection - actions or triggers
 * @param {string} name - of the entity
 * @returns {string} the target of a request
 */
function within (collection, name) {
  if (!name.startsWith('/')) return `${collection}/${name}`
  const [namespace, ...rest] = name.slice(1).split('/')
  if (!namespace || rest.length === 0 || rest.includes('')) {
    throw new TypeError(`'${name}' is not a name: write NAME, PACKAGE/NAME or /NAMESPACE/NAME`)
  }
  return `/${namespace}/${collection}/${rest.join('/')}`
}

const quote = text => encodeURIComponent(text).replace(/[!'()*]/g, c => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)

module.exports = { Client }
