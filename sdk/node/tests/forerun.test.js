'use strict'
// The client against a server that answers what a test says and keeps what it was asked.

const assert = require('node:assert/strict')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { after, before, beforeEach, test } = require('node:test')

const forerun = require('../index.js')

const asked = []
const answers = []
const server = http.createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8').on('data', part => { body += part }).on('end', () => {
    asked.push({ line: `${request.method} ${request.url}`, headers: request.headers, body })
    const { status, document, headers } = answers.shift()
    response.writeHead(status, headers).end(typeof document === 'string' ? document : JSON.stringify(document))
  })
})
const will = (status, document, headers = {}) => answers.push({ status, document, headers })
const basic = key => `Basic ${Buffer.from(key).toString('base64')}`
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sdk-'))
let host

before(async () => {
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  host = `http://127.0.0.1:${server.address().port}`
})

after(() => {
  server.close()
  fs.rmSync(home, { recursive: true })
})

beforeEach(() => {
  asked.length = 0
  for (const name of ['FORERUN_APIHOST', 'FORERUN_AUTH', 'WSK_CONFIG_FILE']) delete process.env[name]
  Object.assign(process.env, { HOME: home, __OW_API_HOST: host, __OW_API_KEY: 'user:secret', __OW_NAMESPACE: 'guest' })
})

test('invoke returns the result', async () => {
  will(200, { n: 42, é: 'ü' })
  assert.deepEqual(await forerun.invoke('double', { n: 21 }), { n: 42, é: 'ü' })
  const [{ line, headers, body }] = asked
  assert.equal(line, 'POST /api/v1/namespaces/guest/actions/double?blocking=true&result=true')
  assert.equal(headers.authorization, basic('user:secret'))
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['idempotency-key'], undefined)
  assert.deepEqual(JSON.parse(body), { n: 21 })
})

test('invoke without waiting returns the id', async () => {
  will(202, { activationId: 'a1' })
  assert.equal(await forerun.invoke('mail', undefined, { blocking: false, idempotencyKey: 'order 7' }), 'a1')
  assert.equal(asked[0].line, 'POST /api/v1/namespaces/guest/actions/mail')
  assert.equal(asked[0].headers['idempotency-key'], 'order 7')
  assert.equal(asked[0].body, '{}')
})

test('names', async () => {
  const names = { 'a b/c?d': 'guest/actions/a%20b/c%3Fd', '/other/pkg/act': 'other/actions/pkg/act', '/_/act': '_/actions/act', ä: 'guest/actions/%C3%A4' }
  for (const [name, target] of Object.entries(names)) {
    will(202, { activationId: 'a1' })
    await forerun.invoke(name, {}, { blocking: false })
    assert.equal(asked.at(-1).line, `POST /api/v1/namespaces/${target}`)
  }
  for (const name of ['/other', '//act', '/other/']) await assert.rejects(forerun.invoke(name), /is not a name/)
})

test('a failed action', async () => {
  will(502, { error: 'sold out.', seats: 0 }, { 'X-OpenWhisk-Activation-Id': 'a9' })
  await assert.rejects(forerun.invoke('reserve'), error => {
    assert.ok(error instanceof forerun.ActionFailed && error instanceof forerun.ForerunError)
    assert.equal(String(error), "ActionFailed: reserve failed: sold out; activations.logs('a9') has what it wrote.")
    assert.deepEqual([error.error, error.result, error.activationId], ['sold out.', { error: 'sold out.', seats: 0 }, 'a9'])
    return true
  })
})

test('an action that outlasts the wait', async () => {
  will(202, { activationId: 'a3' })
  await assert.rejects(forerun.invoke('slow', {}, { wait: 1500 }), error => error instanceof forerun.NotFinished && error.activationId === 'a3')
  assert.match(asked[0].line, /\?blocking=true&result=true&timeout=1500$/)
})

test('refusals', async () => {
  const { APIError, NotFound, TooManyRequests, Unauthorized } = forerun
  const kinds = [[400, APIError, /correct the request/], [401, Unauthorized, /check the key/], [403, Unauthorized, /may do this/],
    [404, NotFound, /check the name/], [429, TooManyRequests, /try again later/], [500, APIError, /transaction t1/]]
  for (const [status, kind, step] of kinds) {
    will(status, { error: 'No.', code: 't1' })
    await assert.rejects(forerun.invoke('act'), error => {
      assert.ok(error instanceof kind)
      assert.match(error.message, new RegExp(`^POST actions/act was refused \\(${status}\\): No; `))
      assert.match(error.message, step)
      assert.deepEqual([error.status, error.reason, error.transaction], [status, 'No.', 't1'])
      return true
    })
  }
  will(503, '<html>')
  await assert.rejects(forerun.invoke('act'), /no reason was given; see the server's log/)
})

test('fire', async () => {
  will(202, { activationId: 't1' })
  will(204, '')
  assert.equal(await forerun.fire('landed', { flight: 'UA1' }), 't1')
  assert.equal(await forerun.fire('/_/landed'), null)
  assert.deepEqual(asked.map(a => a.line), ['POST /api/v1/namespaces/guest/triggers/landed', 'POST /api/v1/namespaces/_/triggers/landed'])
})

test('reading', async () => {
  const { actions, activations } = new forerun.Client()
  const reads = [
    [() => actions.list({ limit: 1, skip: 2 }), [{ name: 'a' }], 'actions?limit=1&skip=2'],
    [() => actions.get('p/a'), { name: 'a' }, 'actions/p/a'],
    [() => activations.list({ name: 'p/a', since: 5, docs: true }), [{ activationId: '1' }], 'activations?name=p%2Fa&since=5&docs=true'],
    [() => activations.get('1'), { activationId: '1' }, 'activations/1']
  ]
  for (const [read, document, target] of reads) {
    will(200, document)
    assert.deepEqual(await read(), document)
    assert.equal(asked.at(-1).line, `GET /api/v1/namespaces/guest/${target}`)
  }
  will(200, { logs: ['x'] })
  assert.deepEqual(await activations.logs('1'), ['x'])
  will(200, { result: { n: 1 }, status: 'success' })
  assert.deepEqual(await activations.result('1'), { n: 1 })
})

test('the environment is read for each request', async () => {
  for (const key of ['first:1', 'second:2']) {
    process.env.__OW_API_KEY = key
    will(200, {})
    await forerun.invoke('a')
    assert.equal(asked.at(-1).headers.authorization, basic(key))
  }
})

test('settings of wsk', async () => {
  for (const name of ['__OW_API_HOST', '__OW_API_KEY', '__OW_NAMESPACE']) delete process.env[name]
  await assert.rejects(forerun.invoke('a'), /where the API is .*forerun login/)
  fs.writeFileSync(path.join(home, '.wskprops'), `# mine\nAPIHOST=${host}\nAUTH = a:b=c\nnonsense\n`)
  will(200, {})
  await forerun.invoke('a')
  assert.match(asked[0].line, /^POST \/api\/v1\/namespaces\/_\/actions\/a\?/)
  assert.equal(asked[0].headers.authorization, basic('a:b=c'))
  process.env.WSK_CONFIG_FILE = path.join(home, 'absent')
  await assert.rejects(forerun.invoke('a'), /not there/)
})

test('answers that are none', async () => {
  for (const bytes of ['', 'SSH-2.0-OpenSSH\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}', 'HTTP/1.1 200 OK\r\n\r\nnull']) {
    const raw = net.createServer(socket => socket.on('data', () => socket.end(bytes))).listen(0, '127.0.0.1')
    await new Promise(resolve => raw.on('listening', resolve))
    const client = new forerun.Client({ host: `http://127.0.0.1:${raw.address().port}`, auth: 'a:b' })
    await assert.rejects(client.actions.invoke('a'), error => error instanceof forerun.ConnectionFailed)
    raw.close()
  }
})

test('nobody listens, or stays silent', async () => {
  const raw = net.createServer(socket => socket.resume()).listen(0, '127.0.0.1')
  await new Promise(resolve => raw.on('listening', resolve))
  const silent = new forerun.Client({ host: `http://127.0.0.1:${raw.address().port}`, auth: 'a:b', timeout: 10 })
  await assert.rejects(silent.actions.invoke('a'), /no answer in time .* a longer timeout/)
  await new Promise(resolve => raw.close(resolve))
  await assert.rejects(silent.actions.invoke('a'), /no connection to the API .*ECONNREFUSED/)
})

test('hosts that are none, and keys that would split the request', async () => {
  for (const bad of ['ftp://a', 'http://', 'http://a:0', 'http://a:99999', 'http://a/path']) {
    await assert.rejects(new forerun.Client({ host: bad, auth: 'a:b' }).actions.invoke('a'), forerun.SettingsError)
  }
  await assert.rejects(forerun.invoke('a', {}, { idempotencyKey: 'x\r\nEvil: 1' }), /Invalid character/)
})

test('phases', async t => {
  const said = []
  const sockets = []
  const door = net.createServer(socket => sockets.push(socket.on('data', part => {
    const words = String(part).split('\r\n').slice(2).filter((word, at) => at % 2 === 0 && word !== '')
    said.push(words.slice(1).join(' '))
    if (words[1] === 'dies') return socket.destroy()
    socket.write(words[1] === 'refused' ? '-ERR the activation is over\r\n' : '+OK\r\n')
  }))).listen(0, '127.0.0.1')
  await new Promise(resolve => door.on('listening', resolve))
  const connect = net.connect
  const connections = t.mock.method(net, 'connect', () => connect(door.address().port, '127.0.0.1')).mock
  assert.equal(await forerun.microtask('outside', {}, () => 1), 1)
  assert.deepEqual(said, [])
  process.env.__OW_API_HOST = 'http://127.0.0.1:3233'
  process.env.__OW_ACTIVATION_ID = 'a1'
  t.after(() => { delete process.env.__OW_ACTIVATION_ID })
  const inner = () => forerun.microtask('parse', {}, async () => 2)
  assert.equal(await forerun.microtask('read', { cpu: 0.1 }, inner), 2)
  await assert.rejects(forerun.microtask('sort', { cpu: 16 }, () => { throw new Error('wrong') }), /^Error: wrong$/)
  assert.deepEqual(said.splice(0), ['read 0.1', 'parse 1', 'read 0.1', 'END', 'sort 16', 'END'])
  assert.equal(connections.callCount(), 1)
  await assert.rejects(forerun.microtask('refused', {}, () => 1), /refused: ERR the activation is over/)
  await assert.rejects(forerun.microtask('dies', {}, () => 1), error => error instanceof forerun.ConnectionFailed)
  assert.equal(await forerun.microtask('after', {}, () => 3), 3)
  assert.deepEqual(said, ['refused 1', 'dies 1', 'dies 1', 'after 1', 'END'])
  for (const name of ['', 'end', 'a b', 'x'.repeat(65), 'a\n', 7]) await assert.rejects(forerun.microtask(name, {}, () => 1), TypeError)
  for (const cpu of [0, -1, NaN, 1e9, 0.01, '1x']) await assert.rejects(forerun.microtask('a', { cpu }, () => 1), RangeError)
  door.close()
  for (const socket of sockets) socket.destroy()
})

test('a connection is kept', async () => {
  let connections = 0
  const count = () => { connections++ }
  server.on('connection', count)
  for (let n = 0; n < 5; n++) will(200, { n })
  for (let n = 0; n < 5; n++) await forerun.invoke('a')
  assert.ok(connections <= 2, `${connections} connections`)
  server.off('connection', count)
})

test('fetch of the platform', async () => {
  will(201, { n: 1 }, { 'X-One': 'a' })
  const answer = await forerun.fetch('/api/v1/namespaces/_/actions/a?blocking=true', {
    method: 'post', body: '{"x":1}', headers: { 'Content-Type': 'application/json' }
  })
  assert.deepEqual([answer.status, answer.headers.get('x-one'), await answer.json()], [201, 'a', { n: 1 }])
  assert.equal(asked[0].line, 'POST /api/v1/namespaces/_/actions/a?blocking=true')
  assert.equal(asked[0].headers.authorization, basic('user:secret'))
  assert.equal(asked[0].body, '{"x":1}')
  will(204, '')
  assert.equal((await forerun.fetch(`${host}/api/v1/web/page`)).status, 204)
  assert.equal(asked[1].headers.authorization, undefined)
})

test('fetch of another address is the global one', async () => {
  process.env.__OW_API_HOST = 'http://127.0.0.1:1'
  will(200, { n: 2 })
  assert.deepEqual(await (await forerun.fetch(`${host}/elsewhere`)).json(), { n: 2 })
  assert.equal(asked[0].headers.authorization, undefined)
  await assert.rejects(forerun.fetch('/api/v1'), forerun.ConnectionFailed)
})
