'use strict'
// Turns what a promise was rejected with into JSON, as the npm package serialize-error does for OpenWhisk's runtime.

const PROPERTIES = ['name', 'message', 'stack', 'code', 'cause', 'errors']

/**
 * Describe what was thrown.
 * @param {unknown} value - an Error, or anything else
 * @returns {unknown} what JSON.stringify takes: without functions, cycles and Buffers
 */
function serialize (value) {
  if (typeof value === 'function') return `[Function: ${value.name || 'anonymous'}]`
  return typeof value === 'object' && value !== null ? serializeObject(value, []) : value
}

function serializeObject (from, above) {
  if (typeof from.toJSON === 'function') return from.toJSON()
  const to = Array.isArray(from) ? [] : {}
  const within = [...above, from]
  const describe = value => {
    if (typeof value !== 'object' || value === null) return value
    if (Buffer.isBuffer(value)) return '[object Buffer]'
    if (typeof value.pipe === 'function') return '[object Stream]'
    return within.includes(value) ? '[Circular]' : serializeObject(value, within)
  }
  for (const [key, value] of Object.entries(from)) {
    if (typeof value !== 'function') to[key] = describe(value)
  }
  for (const key of PROPERTIES) {
    if (from[key] !== undefined && from[key] !== null && typeof from[key] !== 'function') to[key] = describe(from[key])
  }
  return to
}

module.exports = { serialize }
