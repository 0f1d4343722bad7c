// Writes the composition of a JavaScript file as a JSON document: node run.cjs FILE.js OUTPUT.json
'use strict'

const fs = require('fs')
const Module = require('module')
const path = require('path')
const { pathToFileURL } = require('url')

const library = require.resolve('./openwhisk-composer/composer.js')
const composer = require(library)

// The file's require('openwhisk-composer') is this library, installed beside the file or not: parse knows its own classes only.
const resolve = Module._resolveFilename
Module._resolveFilename = function (request, ...rest) {
  return request === 'openwhisk-composer' ? library : resolve.call(this, request, ...rest)
}
if (Module.register) { // the same for ES modules
  const url = JSON.stringify(pathToFileURL(library).href)
  Module.register('data:text/javascript,' + encodeURIComponent(`export const resolve = (request, context, next) =>
    request === 'openwhisk-composer' ? { url: ${url}, shortCircuit: true } : next(request, context)`))
}

async function main ([file, output]) {
  const exported = await import(pathToFileURL(path.resolve(file)))
  const compiled = composer.parse(exported.default).compile()
  fs.writeFileSync(output, JSON.stringify(compiled, null, 4) + '\n')
}

main(process.argv.slice(2)).catch(error => {
  console.error(error instanceof Error ? error.stack : error)
  process.exit(1)
})
