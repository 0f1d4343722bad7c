'use strict'
// A handler of Node actions: it loads the code, then serves one activation after the other, on descriptor 3.

const { AsyncResource } = require('async_hooks')
const fs = require('fs')
const v8 = require('v8')
const vm = require('vm')
const { LoadError, loadFolder, loadText } = require('./loader.cjs')
const { replaceOutput } = require('./output.cjs')
const { serialize } = require('./serialize.cjs')
const { Connection, INIT, INIT_DONE, READY, RUN, RESULT } = require('./wire.cjs')

const FOLDER = process.env.FORERUN_CODE ?? '/action'
const MAX_RESULT_BYTES = 64 << 20
const MAX_SENTENCE = 8000 // characters
const OK = '{"status":"ok"}'
const CONNECTING = /ConnectWrap$|^GetAddrInfoReqWrap$/ // of the names of what a process waits for
const SETTLE_MS = 100 // for which what does not answer is waited for
const SETTLE_TURNS = 3 // of the event loop, in which a door has answered, however slow the machine is

const ACTIVATIONS = 50_000 // that one process serves: the C library never frees a value that an environment had, 0.4 KB for each of them
const NEWS_TURNS = 3 // of the event loop, in which a connection that its peer ended is closed, with TLS too

const connection = new Connection(3)
const next = AsyncResource.bind(() => setImmediate(ready)) // in a context that has nothing of an activation's
let action // the function that is served
let home // the working directory that its code was loaded in
let variables = [] // names in the environment that are the activation's
let current = null // the activation that has begun and is not answered
let served = 0 // activations that were answered
let executed // when the last activation was
let outcome // a WeakRef to what it waits for: whatever could settle that knows of it
let collect // V8's garbage collector, once it was needed
let loading = true // until there is an activation
let uncaught // [error] that nothing caught meanwhile: the first activation ends with it

/** The activation has no result; the text is for the action's author. */
class Failure extends Error {}

async function start () {
  replaceOutput()
  const frame = connection.read()
  if (frame?.type !== INIT) process.exit(0)
  try {
    action = await load(frame)
  } catch (error) {
    refuse(error)
  }
  process.on('uncaughtException', die)
  process.on('beforeExit', starve)
  await settle()
  connection.write(INIT_DONE, '{"ok":true}', '')
  next()
}

/**
 * Let what the code has begun to connect be connected: the wait for an activation may be long, and it would find that that timed out.
 * It is a part of loading: a connection to the outside may wait for an activation's turn.
 */
async function settle () {
  const end = performance.now() + SETTLE_MS
  await new Promise(resolve => setImmediate(resolve)) // a module's connections are begun after it
  for (let turns = 0; connects() && (turns < SETTLE_TURNS || performance.now() < end); turns++) {
    await new Promise(resolve => setTimeout(resolve, 1))
  }
}

const connects = () => process.getActiveResourcesInfo().some(name => CONNECTING.test(name))

function load ({ header, payload }) {
  Object.assign(process.env, header.env)
  if (header.binary) process.chdir(FOLDER)
  home = process.cwd()
  const main = header.main ?? ''
  return header.binary ? loadFolder(main, FOLDER) : loadText(payload, main, FOLDER)
}

function refuse (error) {
  const cause = error instanceof LoadError ? error.message : error
  console.error('Error during initialization:', cause)
  let sentence = `Initialization has failed due to: ${textOf(cause?.stack ?? cause)}`
  if (cause?.code === 'MODULE_NOT_FOUND' || cause?.code === 'ERR_MODULE_NOT_FOUND') {
    sentence += "\nForerun installs no packages: put them in the function's folder (docs/guide/dependencies.md)."
  }
  connection.write(INIT_DONE, JSON.stringify({ ok: false, error: sentence.slice(0, MAX_SENTENCE) }), '')
  process.exit(1)
}

/**
 * Say that this process can take an activation, and wait for it. Nothing else runs meanwhile but the code's own threads: what an
 * activation left pending goes on within the next. A process that has served long ends: the next activation has a new one.
 */
function ready () {
  if (served === ACTIVATIONS) process.exit(0)
  connection.write(READY, '', '')
  const frame = connection.read()
  if (frame?.type !== RUN) process.exit(0)
  current = frame
  loading = false
  enter(frame.header.env ?? {})
  comeHome()
  if (uncaught) crash(uncaught[0])
  turn(NEWS_TURNS, frame)
}

/**
 * Execute an activation once the process has heard what happened while it waited: a pool would give it a connection that ended.
 * @param {number} left - how many turns of the event loop it has for that
 * @param {import('./wire.cjs').Frame} frame - of type Run
 */
function turn (left, frame) {
  if (left > 0) setImmediate(turn, left - 1, frame)
  else execute(frame)
}

/**
 * Execute an activation and answer it.
 * @param {import('./wire.cjs').Frame} frame - of type Run
 * @returns {Promise<void>} settled when it was answered
 */
async function execute (frame) {
  executed = performance.now()
  const called = call(frame.payload)
  outcome = new WeakRef(called)
  try {
    const text = stringify(await called, frame.header.limit ?? MAX_RESULT_BYTES)
    answer(frame, OK, text)
  } catch (error) {
    fail(frame, error instanceof Failure ? error.message : `An error has occurred: ${textOf(error)}`)
  }
}

function enter (env) {
  for (const name of variables) {
    if (!(name in env)) delete process.env[name]
  }
  variables = Object.keys(env)
  Object.assign(process.env, env)
}

/** Leave a working directory that is gone, as all is that the activation before had in /tmp. */
function comeHome () {
  try {
    if (process.cwd() !== home) fs.realpathSync.native('.')
  } catch {
    process.chdir(home)
  }
}

function fail (frame, sentence) {
  answer(frame, JSON.stringify({ status: 'error', error: sentence.slice(0, MAX_SENTENCE) }), '')
}

function answer (frame, header, payload) {
  if (current !== frame) return // it was answered: nothing could end it, and then something did
  current = null
  served++
  connection.write(RESULT, header, payload)
  next()
}

/**
 * Call the action. What it throws is its developer's error; what its promise is rejected with is its result.
 * @param {string} payload - the input's JSON
 * @returns {Promise<object>} the result
 */
async function call (payload) {
  let value
  try {
    value = action(JSON.parse(payload))
  } catch (error) {
    console.error(error)
    throw new Failure(`An error has occurred: ${textOf(error)}`)
  }
  try {
    value = await value
  } catch (error) {
    if (error instanceof Error) console.error(error)
    return { error: error ? serialize(error) : {} }
  }
  if (value === undefined) return {}
  if (typeof value !== 'object') {
    console.error(`Result must be of type object but has type "${typeof value}":`, value)
    throw new Failure('The action did not return a dictionary or array.')
  }
  return value
}

function stringify (value, limit) {
  let text
  try {
    text = JSON.stringify(value)
  } catch (error) {
    console.error(error)
    throw new Failure(`The action returned a dictionary that is not JSON: ${textOf(error)}`)
  }
  if (text?.[0] !== '{' && text?.[0] !== '[') throw new Failure('The action did not return a dictionary or array.')
  const size = 3 * text.length > limit ? Buffer.byteLength(text) : text.length
  if (size > limit) throw new Failure(`The action produced a response that exceeded the allowed length: ${size} > ${limit} bytes.`)
  return text
}

function textOf (value) {
  try {
    return String(value)
  } catch {
    return Object.prototype.toString.call(value)
  }
}

/**
 * End the process after an error that nothing caught, as Node does; an activation that is under way fails with it.
 * @param {unknown} error - what was thrown, or what a promise was rejected with
 */
function die (error) {
  if (process.listenerCount('uncaughtException') > 1) return // the action has a way of its own
  if (loading) uncaught ??= [error]
  else crash(error)
}

function crash (error) {
  console.error('Uncaught', error)
  if (current !== null) fail(current, `An error has occurred: ${textOf(error)}`)
  process.exit(1)
}

/**
 * The process would end: no timer, connection or child keeps it. Answer an activation that nothing can bring to its end any more, as
 * nothing knows of what it waits for; else something unref'd may, for which the process stays.
 */
function starve () {
  if (current === null) return
  collect ??= collector()
  collect()
  if (outcome.deref() === undefined) fail(current, 'The action ended without a result: nothing is left that could settle its promise.')
  else setTimeout(() => {}, performance.now() - executed) // after as long again it is looked at once more
}

/**
 * Find V8's garbage collector, and leave it hidden from the code.
 * @returns {() => void} collects all that nothing knows of
 */
function collector () {
  v8.setFlagsFromString('--expose-gc')
  const gc = vm.runInNewContext('gc')
  v8.setFlagsFromString('--no-expose-gc')
  return gc
}

start()
