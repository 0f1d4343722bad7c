'use strict'
// Loads an action's code and finds its main function, as OpenWhisk's Node runtime does.

const fs = require('fs')
const Module = require('module')
const path = require('path')
const { pathToFileURL } = require('url')
const vm = require('vm')

const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$]*(?:\.[\p{ID_Start}$_][\p{ID_Continue}$]*)*$/u
// V8's messages about the source of an ES module that is compiled as a script.
const MODULE_SYNTAX = /^(?:Cannot use import statement outside a module|Unexpected token 'export'|Cannot use 'import\.meta' outside a module|await is only valid in async functions and the top level bodies of modules)/

const DEFAULT = 'main'

/** The code has no usable entry point; the text is for its author. */
class LoadError extends Error {}

/**
 * Load source text.
 * @param {string} source - a script or an ES module
 * @param {string} main - the function's name, or a path to it like "handlers.main"; empty: the default
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
    const exported = await importText(source, folder)
    return choose(exported, main, find(exported, main || DEFAULT))
  }
  const { exported, found, handler } = script()
  return choose(exported, main, found === undefined ? find(exported, main || DEFAULT) : found, handler)
}

/**
 * Compile a script so that executing it returns what it exports, and what its scope has.
 * @param {string} source - the script
 * @param {string} main - a name, or names with dots; empty: the default
 * @param {string} filename - for stack traces, and what require() is relative to
 * @returns {Function} executes the script and returns its exports, and what main and "handler" name in its scope
 */
function compile (source, main, filename) {
  const module = new Module(filename)
  module.filename = filename
  module.paths = Module._nodeModulePaths(path.dirname(filename))
  const require = Module.createRequire(filename)
  const name = main || DEFAULT
  const first = name.split('.', 1)[0]
  const tail = `\n;return [typeof ${first} === 'undefined' ? undefined : ${name}, typeof handler === 'undefined' ? undefined : handler]`
  const run = vm.compileFunction(source.replace(/^#!.*/, '') + tail, ['exports', 'require', 'module', '__filename', '__dirname'], {
    filename,
    importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER
  })
  return () => {
    const returned = run.call(module.exports, module.exports, require, module, filename, path.dirname(filename))
    const [found, handler] = Array.isArray(returned) ? returned : [returned] // the script may return something itself
    module.loaded = true
    return { exported: module.exports, found, handler }
  }
}

function importText (source, folder) {
  const file = path.join(folder, 'index.mjs')
  if (!fs.existsSync(file)) fs.writeFileSync(file, source) // else the first process did, and the folder is read-only since
  return import(pathToFileURL(file).href)
}

/**
 * Load an archive that was extracted into the folder, which is the working directory.
 * @param {string} main - "function", or "file.function" where file is at the archive's top; empty: the default
 * @param {string} folder - of the action's code
 * @returns {Promise<Function>} the function
 */
async function loadFolder (main, folder) {
  checkName(main)
  const dot = main.indexOf('.')
  const file = dot < 0 ? entryFile(folder) : moduleFile(path.join(folder, main.slice(0, dot)))
  const exported = isModule(file, folder) ? await import(pathToFileURL(file).href) : Module.createRequire(file)(file)
  return choose(exported, main, find(exported, main.slice(dot + 1) || DEFAULT))
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
  if (main !== '' && !NAME.test(main)) throw new LoadError('Name of main function is not valid.')
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

/**
 * Choose the action's function. An action without a named function and without main has the only handler that its code exports.
 * @param {object} exported - by the code
 * @param {string} main - what the action names; empty: the default
 * @param {unknown} found - what the code has of that name
 * @param {unknown} [handler] - what its scope has of that name
 * @returns {Function} the function
 */
function choose (exported, main, found, handler) {
  if (typeof found === 'function') return found
  const others = new Set(main === '' && found === undefined ? [exported, exported?.default, exported?.handler ?? handler] : [])
  const [only, ...more] = [...others].filter(value => typeof value === 'function')
  if (only === undefined || more.length > 0) {
    throw new LoadError(`Action entrypoint '${main || DEFAULT}' is not a function.${adviceFor(main, more)}`)
  }
  if (only.length > 1) {
    const name = only.name ? ` '${only.name}'` : ' of the code'
    throw new LoadError(`The function${name} takes ${only.length} arguments, and an action has one, its parameters: leave the others out, and return the result.`)
  }
  return only
}

function adviceFor (main, others) {
  if (others.length > 0) return ' The code exports several functions: name one of them as the main function of the action.'
  if (main !== '') return ' Name a function of the code as the main function of the action.'
  return ' Write function main (args), which returns the result as an object. What the code prints goes to the log.'
}

module.exports = { loadText, loadFolder, LoadError }
