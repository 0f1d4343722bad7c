'use strict'
// Says which part of a function needs how many processors, so that Forerun's scheduler can run other work beside it.

const net = require('node:net')

const { ConnectionFailed, ForerunError } = require('./errors.js')

const DOOR = { host: '127.0.0.1', port: 6379 } // the state door of a sandbox
const API = 'http://127.0.0.1:3233' // where Forerun says that a function finds the API; elsewhere phases do nothing
const LEAST = 0.0625
const MOST = 1024 // processors
const LONGEST = 64

/** The phases of this process that have begun and not ended, and the connection on which they are said. */
class Phases {
  #begun = []
  #asked = Promise.resolve() // the last command
  #socket
  #answers = [] // of commands under way: how each is settled

  async begin (phase) {
    this.#begun.push(phase)
    try {
      await this.#say(phase)
    } catch (error) {
      this.#begun.splice(this.#begun.lastIndexOf(phase), 1)
      throw error
    }
  }

  async end (phase) {
    const last = phase === this.#begun.at(-1)
    this.#begun.splice(this.#begun.lastIndexOf(phase), 1)
    if (last) await this.#say(this.#begun.at(-1))
  }

  // Says a phase, after those that were said before; undefined: none.
  #say (phase) {
    if (process.env.__OW_API_HOST !== API || !('__OW_ACTIVATION_ID' in process.env)) return Promise.resolve()
    const words = phase ? ['FORERUN.PHASE', phase.name, String(phase.cpu)] : ['FORERUN.PHASE', 'END']
    const command = `*${words.length}\r\n` + words.map(word => `$${word.length}\r\n${word}\r\n`).join('')
    const said = this.#asked.then(() => this.#askTwice(command))
    this.#asked = said.catch(() => {})
    return said
  }

  async #askTwice (command) {
    const known = this.#socket !== undefined
    let answer
    try {
      answer = await this.#ask(command)
    } catch (error) {
      if (!known) throw new ConnectionFailed(`The state door does not answer: ${error.message}.`, { cause: error })
      return this.#askTwice(command) // the connection ended with an earlier activation
    }
    if (!answer.startsWith('+')) throw new ForerunError(`The phase is refused: ${answer.slice(1)}.`)
  }

  #ask (command) {
    return new Promise((resolve, reject) => {
      this.#answers.push({ resolve, reject })
      this.#socket ??= this.#connect()
      this.#socket.ref().write(command)
    })
  }

  #connect () {
    const socket = net.connect(DOOR)
    let text = ''
    const leave = error => {
      if (socket !== this.#socket) return
      this.#socket = undefined
      for (const { reject } of this.#answers.splice(0)) reject(error)
    }
    socket.setNoDelay(true).setEncoding('utf8')
    socket.on('error', leave).on('close', () => leave(new Error('the connection is closed')))
    socket.on('data', part => {
      text += part
      for (let at; (at = text.indexOf('\r\n')) >= 0; text = text.slice(at + 2)) {
        this.#answers.shift()?.resolve(text.slice(0, at))
        if (this.#answers.length === 0) socket.unref() // it does not keep a process from its end
      }
    })
    return socket
  }
}

const phases = new Phases()

/**
 * Does work in a phase, which begins when the scheduler lets it in. Its types and what they mean are in index.d.ts.
 * @param {string} name - of the phase
 * @param {{cpu?: number}} options - how many processors it needs
 * @param {() => any} work - to do
 * @returns {Promise<any>} what the work returns
 */
async function microtask (name, { cpu = 1 }, work) {
  if (typeof name !== 'string' || name.length > LONGEST || !/^[\w.-]+$/.test(name) || name.toUpperCase() === 'END') {
    throw new TypeError(`${JSON.stringify(String(name).slice(0, LONGEST))} is not a name of a phase: give 1 to ${LONGEST} letters, digits, '.', '_' or '-'`)
  }
  if (!(cpu >= LEAST && cpu <= MOST)) {
    throw new RangeError(`cpu: ${cpu} is out of range: a phase needs ${LEAST} (a sixteenth) to ${MOST} processors`)
  }
  const phase = { name, cpu }
  await phases.begin(phase)
  try {
    return await work()
  } finally {
    await phases.end(phase)
  }
}

module.exports = { microtask }
