import { readFileSync } from 'node:fs'

/**
 * Reads the file in which the server writes how it is reached.
 * @param {string} path of DATA/wskprops
 * @returns {{apihost: string, api_key: string}} options of the npm clients openwhisk and openwhisk-composer
 */
export function readProps (path) {
  const lines = readFileSync(path, 'utf8').split('\n').map(line => line.split('='))
  const props = Object.fromEntries(lines.map(([name, ...rest]) => [name, rest.join('=')]))
  return { apihost: props.APIHOST, api_key: props.AUTH }
}
