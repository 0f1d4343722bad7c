// The actions of the random compositions, by their names. Each call is counted in Redis, and what it answers depends on the calls before it, if
// the test says that they have an order, or on its input alone.
const Redis = require('ioredis')
const redis = new Redis(process.env.REDIS_URL)

// What is the same for equal inputs, but for the ids of activations.
const told = value => JSON.stringify(value, (key, v) => key === 'activationId' || key === 'sessionId' ? '*'
  : v && typeof v === 'object' && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => a < b ? -1 : 1)) : v)

function hash (text) {
  let h = 2166136261
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619)
  return h >>> 8
}

const answers = {
  put: (n, p) => ({ ...p, ['k' + n % 3]: n % 100 }),
  test: (n, p) => ({ value: n % 2 === 0, seen: p }),
  flip: (n, p) => ({ ...p, value: n % 3 !== 0 }),
  fail: (n, p) => n % 2 === 0 ? { error: 'failed ' + n % 100, detail: p } : n % 5 === 1 ? { error: n % 10 - 1 } : p,
  prepare: (n, p) => n % 4 === 3 ? p : { type: 'action', name: ['/_/put', 'put', '/_/missing', 'a/b/c/d', '', '/_/put'][n % 6], params: [p, p, p, null, [p]][n % 5] },
  begin: (n, p) => Object.fromEntries(Object.entries(p).filter(([key]) => key !== 'error')),
  done: (n, p) => p
}

exports.main = async params => {
  const name = process.env.__OW_ACTION_NAME.split('/').pop()
  const call = name + told(params)
  const [[, order], [, calls]] = await redis.multi().get('ordered').incr('calls').exec()
  const answer = answers[name](order ? calls : hash(call), params)
  const note = redis.multi().hincrby('counts', name, 1).hincrby('seen', call, 1)
  if (order) note.rpush('trace', call)
  await note.exec()
  return answer
}
