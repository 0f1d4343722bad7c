// A random function, as function.py is one: it does what SCRIPT says. To redis.js or ioredis.js it leaves what is about state.
/* global SCRIPT, KEEP, OUTSIDE */
const fs = require('fs')
const openwhisk = require('openwhisk')

class End { constructor (value) { this.value = value } }

const sorted = (key, v) => v && typeof v === 'object' && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => a < b ? -1 : 1)) : v
const told = value => {
  const text = JSON.stringify(value === undefined ? null : value, sorted).replace(/[0-9a-f]{32}/g, '*')
  return text.length <= 120 ? JSON.parse(text) : `${text.slice(0, 16)}~${text.length}~${crc(text)}`
}
const crc = text => {
  let h = 2166136261
  for (const b of Buffer.from(text)) h = Math.imul(h ^ b, 16777619)
  return h >>> 8
}
const said = value => typeof value === 'string' ? value : JSON.stringify(told(value))
const fill = (value, v) => {
  if (typeof value === 'string') return value.replace(/\{(\w+)\}/g, (_, name) => said(v[name] === undefined ? '' : v[name]))
  if (Array.isArray(value)) return value.map(e => fill(e, v))
  if (value && typeof value === 'object') return '$' in value ? v[value.$] : Object.fromEntries(Object.entries(value).map(([k, e]) => [k, fill(e, v)]))
  return value
}
const number = value => {
  const n = Math.trunc(Number(value))
  return value === null || value === undefined || Number.isNaN(n) ? crc(said(value)) % 1000 : n
}
const failed = e => 'E ' + String(e.message).replace(/[0-9a-f]{32}/g, '*')

async function raw (method, path, body, headers) {
  const answer = await fetch(process.env.__OW_API_HOST + '/api/v1/namespaces/_/' + path, {
    method,
    body: body === null ? undefined : JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', Authorization: 'Basic ' + Buffer.from(process.env.__OW_API_KEY).toString('base64'), ...headers }
  })
  const document = await answer.json()
  for (const member of ['updated', 'version', 'start', 'end', 'duration', 'annotations', 'code', 'activationId', 'logs', 'publish']) delete document[member]
  delete document.exec?.code // which holds where the outside is,
  delete document.parameters // as these may
  return [answer.status, told(document)]
}

const once = path => {
  fs.appendFileSync(path, 'x')
  return fs.statSync(path).size
}

const heard = {
  call: (v, [name, params]) => openwhisk().actions.invoke({ name, params: fill(params, v), blocking: true, result: true }).then(told, failed),
  both: (v, [calls]) => Promise.all(fill(calls, v).map(([name, params]) => heard.call(v, [name, params]))),
  pipe: (v, [commands]) => Promise.all(commands.map(args => heard.redis(v, args))),
  raw: (v, a) => raw(...fill(a, v)),
  send: async (v, [text]) => (await fetch(OUTSIDE, { method: 'POST', body: fill(text, v) })).text(),
  once: () => once('/tmp/once'),
  loaded: () => 1,
  set: (v, [value]) => fill(value, v),
  big: (v, [text, n]) => text.repeat(n)
}

async function run (script, v, out) {
  for (const [name, ...a] of script) {
    if (name in heard) {
      out[a[0]] = v[a[0]] = await heard[name](v, a.slice(1))
      continue
    }
    switch (name) {
      case 'forget': out[a[0]] = v[a[0]] = typeof v[a[0]]; break
      case 'if': await run(number(v[a[0]]) % a[1] === 0 ? a[2] : a[3], v, out); break
      case 'loop':
        for (v.i = 0; v.i < a[0]; v.i++) await run(a[1], v, out)
        break
      case 'detach':
        console.log('began', (await openwhisk().actions.invoke({ name: a[0], params: fill(a[1], v) })).activationId)
        break
      case 'log': console.log(fill(a[0], v)); break
      case 'complain': console.error(fill(a[0], v)); break
      case 'sleep': await new Promise(resolve => setTimeout(resolve, a[0])); break
      case 'return': throw new End(fill(a[0], v))
      case 'raise': throw new Error(fill(a[0], v))
      case 'exit': process.exit(a[0]); break
    }
  }
}

// Where a function is to keep its records: what it is given says it, or the error of one before it.
function place (value) {
  if (typeof value === 'string') return (value.match(/at=([^ ]*)/) || [])[1]
  if (!value || typeof value !== 'object') return undefined
  if (!Array.isArray(value) && typeof value.at === 'string') return value.at
  const parts = Array.isArray(value) ? value : Object.keys(value).sort().map(key => value[key])
  return parts.map(place).find(found => found !== undefined)
}

exports.main = async params => {
  const v = { k: 0, ...params, at: place(params) }
  if (v.at === undefined) { // who has no records of its own does nothing
    for (const found of JSON.stringify(params).match(/[0-9a-f]{32}/g) || []) console.log('given', found)
    return { lost: true, k: v.k }
  }
  const out = { at: v.at, k: v.k }
  for (const name of KEEP) if (name in params) out[name] = params[name]
  try {
    await run(SCRIPT, v, out)
  } catch (e) {
    if (e instanceof End) return e.value
    throw e
  }
  return out
}
