'use strict'
// The standard streams of an action: a line is in the pipe when console.log returns.

const { writeAll } = require('./wire.cjs')

/** Put synchronous streams in the place of process.stdout and process.stderr, made when first used. */
function replaceOutput () {
  define('stdout', 1)
  define('stderr', 2)
}

function define (name, fd) {
  let stream
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get: () => (stream ??= open(fd)),
    set: replacement => { stream = replacement }
  })
}

function open (fd) {
  const { Writable } = require('stream')
  const stream = new Writable({
    autoDestroy: false,
    write (chunk, _encoding, done) {
      writeAll(fd, chunk, chunk.length)
      done()
    }
  })
  // This process does not close what it inherited.
  return Object.assign(stream, { fd, _type: 'pipe', _isStdio: true, destroySoon: stream.destroy, _destroy: (error, done) => done(error) })
}

module.exports = { replaceOutput }
