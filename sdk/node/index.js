'use strict'
// A client of OpenWhisk's API: its types and what they mean are in index.d.ts.

const { Client } = require('./client.js')
const {
  ActionFailed, APIError, ConnectionFailed, ForerunError, NotFinished, NotFound, SettingsError, TimedOut, TooManyRequests, Unauthorized
} = require('./errors.js')
const { fetch } = require('./fetch.js')
const { microtask } = require('./phases.js')

const client = new Client()

const invoke = (name, params, options) => client.actions.invoke(name, params, options)
const fire = (name, params) => client.triggers.fire(name, params)

module.exports = {
  APIError,
  ActionFailed,
  Client,
  ConnectionFailed,
  ForerunError,
  NotFinished,
  NotFound,
  SettingsError,
  TimedOut,
  TooManyRequests,
  Unauthorized,
  fetch,
  fire,
  invoke,
  microtask
}
