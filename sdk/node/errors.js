'use strict'
// What can go wrong: each error names its cause, and what to do next.

class ForerunError extends Error {
  /**
   * @param {string} message - a sentence for a person
   * @param {object} [facts] - what a program wants to know, set as properties
   */
  constructor (message, facts) {
    super(message)
    Object.assign(this, facts)
    Object.defineProperty(this, 'name', { value: new.target.name, configurable: true, writable: true })
  }
}

class SettingsError extends ForerunError {}
class ConnectionFailed extends ForerunError {}
class TimedOut extends ConnectionFailed {}
class ActionFailed extends ForerunError {}
class NotFinished extends ForerunError {}
class APIError extends ForerunError {}
class Unauthorized extends APIError {}
class NotFound extends APIError {}
class TooManyRequests extends APIError {}

const NEXT = {
  400: 'correct the request',
  401: "check the key; a function's own is void once its activation has ended",
  403: 'use a key that may do this',
  404: 'check the name and the namespace, or deploy it first',
  409: 'it is in use or of another sort: see what is there under this name',
  413: 'send less: put large data into the state and pass its key',
  429: 'try again later'
}

const KINDS = { 401: Unauthorized, 403: Unauthorized, 404: NotFound, 429: TooManyRequests }

/**
 * Words what the API refused; its own sentence is in the document's "error".
 * @param {string} what - was asked
 * @param {{status: number, body: string}} answer - of the API
 * @returns {APIError} the error
 */
function refusal (what, { status, body }) {
  let document
  try {
    document = JSON.parse(body)
  } catch { /* a proxy's page: it says nothing that helps */ }
  const reason = String(document?.error ?? '')
  const transaction = String(document?.code ?? '')
  const step = NEXT[status] ?? (transaction ? `see the server's log, transaction ${transaction}` : "see the server's log")
  const sentence = `${what} was refused (${status}): ${reason.replace(/\.+$/, '') || 'no reason was given'}; ${step}.`
  return new (KINDS[status] ?? APIError)(sentence, { status, reason, transaction })
}

/**
 * Words the failure of an action.
 * @param {string} name - of the action
 * @param {object} result - that it returned
 * @param {string} activationId - of its record
 * @returns {ActionFailed} the error
 */
function failure (name, result, activationId) {
  const error = result.error
  const text = typeof error === 'string' ? error : JSON.stringify(error)
  const logs = activationId ? `; activations.logs('${activationId}') has what it wrote` : ''
  return new ActionFailed(`${name} failed: ${text?.replace(/\.+$/, '')}${logs}.`, { error, result, activationId })
}

module.exports = {
  ActionFailed, APIError, ConnectionFailed, ForerunError, NotFinished, NotFound, SettingsError, TimedOut, TooManyRequests, Unauthorized, failure, refusal
}
