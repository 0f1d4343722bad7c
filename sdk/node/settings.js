'use strict'
// Finds where the API is and who calls it.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const { SettingsError } = require('./errors.js')

const NEXT = 'inside a function the platform sets it, unless the annotation provide-api-key is false; elsewhere run `forerun login`, or give it to new Client(...)'

/**
 * Completes what is given from the environment, and that from the file that `wsk` and `forerun` keep. Called for each
 * request: a function's key is new with each activation, and void after it.
 * @param {{host?: string, auth?: string, namespace?: string}} given - to the client
 * @returns {{host: string, auth: string, namespace: string, ca?: string}} how the API is called
 */
function find (given) {
  const env = process.env
  let host = given.host || env.FORERUN_APIHOST || env.__OW_API_HOST
  let auth = given.auth || env.FORERUN_AUTH || env.__OW_API_KEY
  let namespace = given.namespace || env.__OW_NAMESPACE
  let file = {}
  if (!host || !auth) {
    file = readProperties()
    host ||= file.APIHOST
    auth ||= file.AUTH
    namespace ||= file.NAMESPACE
  }
  if (!host) throw new SettingsError(`It is not known where the API is (__OW_API_HOST): ${NEXT} as host.`)
  if (!auth) throw new SettingsError(`There is no key for the API (__OW_API_KEY): ${NEXT} as auth.`)
  return { host, auth, namespace: namespace || '_', ca: authorities(host, file) }
}

/**
 * Finds the authorities of a host: FORERUN_CA, else those of the settings, for the host in the settings alone. The settings have ca.crt beside them,
 * and the authority that was trusted at `forerun login`.
 * @param {string} host - of the API
 * @param {{APIHOST?: string, CA?: string}} file - what was read of the settings, if anything
 * @returns {string | undefined} certificates in PEM
 */
function authorities (host, file) {
  if (host.startsWith('http://')) return undefined
  const asked = process.env.FORERUN_CA
  if (asked) {
    try {
      return fs.readFileSync(asked, 'utf8')
    } catch (error) {
      throw new SettingsError(`The authority ${asked}, which FORERUN_CA names, cannot be read: ${error.message}.`)
    }
  }
  const plain = text => text?.toLowerCase().replace('https://', '').replace(/\/+$/, '')
  if (plain(file.APIHOST) !== plain(host)) return undefined
  let found = ''
  try {
    found = fs.readFileSync(path.join(path.dirname(properties()), 'ca.crt'), 'utf8')
  } catch { /* mostly there is none */ }
  if (!found.includes('-----BEGIN CERTIFICATE-----')) found = '' // the file may be another program's
  if (file.CA) found += `\n-----BEGIN CERTIFICATE-----\n${file.CA}\n-----END CERTIFICATE-----\n`
  return found || undefined
}

const properties = () => process.env.WSK_CONFIG_FILE || path.join(os.homedir(), '.wskprops')

/**
 * Reads lines NAME=VALUE; a file that nobody asked for may be missing.
 * @returns {{APIHOST?: string, AUTH?: string, NAMESPACE?: string}} the values by name
 */
function readProperties () {
  const asked = process.env.WSK_CONFIG_FILE
  const file = properties()
  let text
  try {
    text = fs.readFileSync(file, 'utf8')
  } catch (error) {
    if (error.code !== 'ENOENT') throw new SettingsError(`The settings ${file} cannot be read: ${error.message}.`)
    if (asked) throw new SettingsError(`The settings ${file}, which WSK_CONFIG_FILE names, are not there.`)
    return {}
  }
  const lines = text.split('\n').filter(line => line.includes('=') && !line.startsWith('#'))
  return Object.fromEntries(lines.map(line => {
    const [name, ...rest] = line.split('=')
    return [name.trim().toUpperCase(), rest.join('=').trim()]
  }))
}

module.exports = { find }
