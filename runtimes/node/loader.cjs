'use strict'
// Loads an action's code and finds its main function, as OpenWhisk's Node runtime does.

const fs = require('fs')
const Module = require('module')
const path = require('path')
const { pathToFileURL } = require('url')
const vm = require('vm')

const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$]*(?:\.[\p{ID_Start}$_][\p{ID_Continue}$]*)*$/u
// What V8 says of the source of an ES module that is compiled as a script.
const MODULE_SYNTAX = /^(?:Cannot use import statement outside a module|Unexpected token 'export'|Cannot use 'import\.meta' outside a module|await is only valid in async functions and the top level bodies of modules)/

/** The code has no usable entry point; the text is for its author. */
class LoadError extends Error {}

/**
 * Load source text.
 * @param {string} source - a script or an ES module
 * @param {string} main - the function's name, or a path to it like "handlers.main"
 * @param {string} folder - of the action's code
 * @returns {Promise<Function>} the function
 */
async function loadText (source, main, folder) {
  if (source.trim() === '') throw new LoadError('Missing main/no code to execute.')
  checkName(main)
  let script
  try {
    script = compile(source, main, path.join(folder, 'index.js'))
  } catch (error) {
    if (!(error instanceof SyntaxError && MODULE_SYNTAX.test(error.message))) throw error
    return assertFunction(find(await importText(source, folder), main), main)
  }
  return assertFunction(script(), main)
}

/**
 * Compile a script so that executing it returns what main names in its scope, or among its exports.
 * @param {string} source - the script
 * @param {string} main - a name, or names with dots
 * @param {string} filename - for stack traces, and what require() is relative to
 * @returns {Function} executes the script
 */
function compile (source, main, filename) {
  const module = new Module(filename)
  module.filename = filename
  module.paths = Module._nodeModulePaths(path.dirname(filename))
  const require = Module.createRequire(filename)
  const first = main.split('.', 1)[0]
  const tail = `\n;if (typeof ${first} !== 'undefined') return ${main}`
  const run = vm.compileFunction(source.replace(/^#!.*/, '') + tail, ['exports', 'require', 'module', '__filename', '__dirname'], {
    filename,
    importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER
  })
  return () => {
    const found = run.call(module.exports, module.exports, require, module, filename, path.dirname(filename))
    module.loaded = true
    return found === undefined ? find(module.exports, main) : found
  }
}

function importText (source, folder) {
  const file = path.join(folder, 'index.mjs')
  if (!fs.existsSync(file)) fs.writeFileSync(file, source) // else the first process did, and the folder is read-only since
  return import(pathToFileURL(file).href)
}

/**
 * Load an archive that was extracted into the folder, which is the working directory.
 * @param {string} main - "function", or "file.function" where file is at the archive's top
 * @param {string} folder - of the action's code
 * @returns {Promise<Function>} the function
 */
async function loadFolder (main, folder) {
  checkName(main)
  const dot = main.indexOf('.')
  const file = dot < 0 ? entryFile(folder) : moduleFile(path.join(folder, main.slice(0, dot)))
  const exported = isModule(file, folder) ? await import(pathToFileURL(file).href) : Module.createRequire(file)(file)
  return assertFunction(find(exported, main.slice(dot + 1)), main)
}

/**
 * Find the archive's entry: what its package.json names, or an index file.
 * @param {string} folder - of the action's code
 * @returns {string} the file's path
 */
function entryFile (folder) {
  const described = fs.existsSync(path.join(folder, 'package.json'))
  const index = ['index.js', 'index.mjs', 'index.cjs'].map(name => path.join(folder, name)).find(file => fs.existsSync(file))
  if (described && (index === undefined || readPackage(folder).main !== undefined)) return moduleFile(folder)
  if (index !== undefined) return index
  throw new LoadError('Zipped actions must contain either package.json or index.js at the root.')
}

function moduleFile (name) {
  const file = ['.mjs', '.cjs'].map(extension => name + extension).find(file => fs.existsSync(file))
  return file ?? Module.createRequire(name).resolve(name)
}

function isModule (file, folder) {
  return file.endsWith('.mjs') || (file.endsWith('.js') && readPackage(folder).type === 'module')
}

function readPackage (folder) {
  try {
    return JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8').replace(/^\uFEFF/, '')) ?? {} // Node drops the mark, too
  } catch (error) {
    if (error.code === 'ENOENT') return {}
    throw new LoadError(`package.json cannot be read: ${error.message}`)
  }
}

function checkName (main) {
  if (!NAME.test(main)) throw new LoadError('Name of main function is not valid.')
}

/**
 * Follow a path of names through what a module exports; of an ES module's default export too.
 * @param {object} exported - by the module
 * @param {string} main - a name, or names with dots
 * @returns {unknown} what is there; undefined if nothing is
 */
function find (exported, main) {
  const follow = from => main.split('.').reduce((value, name) => value?.[name], from)
  const found = follow(exported)
  return found === undefined && exported?.default !== undefined ? follow(exported.default) : found
}

function assertFunction (found, main) {
  if (typeof found === 'function') return found
  throw new LoadError(`Action entrypoint '${main}' is not a function.`)
}

module.exports = { loadText, loadFolder, LoadError }
