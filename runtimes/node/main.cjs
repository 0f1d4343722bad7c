'use strict'
// A handler of Node actions: it loads the code, then serves one activation after the other, on descriptor 3.

const path = require('path')
const { LoadError, loadFolder, loadText } = require('./loader.cjs')
const { replaceOutput } = require('./output.cjs')
const { serialize } = require('./serialize.cjs')
const { Connection, INIT, INIT_DONE, READY, RUN, RESULT } = require('./wire.cjs')

const FOLDER = process.env.FORERUN_CODE ?? '/action'
const LIMIT = 64 << 20
const OK = '{"status":"ok"}'

const connection = new Connection(3)
let running = false // an activation has begun and is not answered

/** The activation has no result; the text is for the action's author. */
class Failure extends Error {}

async function start () {
  replaceOutput()
  const frame = connection.read()
  if (frame?.type !== INIT) process.reallyExit(0)
  const action = await load(frame)
  if (action === undefined) return
  connection.write(INIT_DONE, '{"ok":true}', '')
  process.on('uncaughtException', die)
  process.on('beforeExit', starve)
  ready(action)
}

/**
 * Load the code; if that fails say why.
 * @param {import('./wire.cjs').Frame} frame - of type Init
 * @returns {Promise<Function | undefined>} the action's main function
 */
async function load ({ header, payload }) {
  Object.assign(process.env, header.env)
  const main = header.main || 'main'
  try {
    return header.binary ? await loadFolder(main, FOLDER) : await loadText(payload, main, FOLDER)
  } catch (error) {
    const known = error instanceof LoadError
    console.error('Error during initialization:', known ? error.message : error)
    const text = `Initialization has failed due to: ${known ? error.message : stackOf(error)}`
    connection.write(INIT_DONE, ascii({ ok: false, error: text }), '')
    process.exitCode = 1
  }
}

/**
 * Say that this process can take an activation, wait for it and execute it. While it waits nothing else of the process
 * runs, so what an activation left pending goes on within the next.
 * @param {Function} action - main
 */
function ready (action) {
  connection.write(READY, '', '')
  const frame = connection.read()
  if (frame?.type !== RUN) process.reallyExit(0)
  if (process.getActiveResourcesInfo().length === 0) execute(action, frame)
  else setImmediate(() => setImmediate(execute, action, frame)) // hear first which connections ended meanwhile
}

async function execute (action, frame) {
  running = true
  Object.assign(process.env, frame.header.env)
  let text
  try {
    text = stringify(await call(action, frame.payload), frame.header.limit ?? LIMIT)
  } catch (error) {
    if (!running) return
    answer(ascii({ status: 'error', error: error instanceof Failure ? error.message : `An error has occurred: ${textOf(error)}` }), '')
    text = undefined
  }
  if (text !== undefined && running) answer(OK, text)
  setImmediate(ready, action)
}
