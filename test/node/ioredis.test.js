// The npm client ioredis, unchanged, against the door for Redis clients of a running server.
import assert from 'node:assert/strict'
import test from 'node:test'

import Redis from 'ioredis'

/**
 * Runs a scenario with clients, which end with it.
 * @param {string} name - of the scenario
 * @param {(open: () => Redis, key: (name: string) => string) => Promise<void>} scenario - gets what opens a client
 */
function scenario (name, scenario) {
  test(name, { timeout: 180000 }, async () => {
    const clients = []
    const open = options => {
      clients.push(new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: 0, ...options }))
      return clients.at(-1)
    }
    try {
      await scenario(open, key => `ioredis/${name}/${key}`)
    } finally {
      for (const client of clients) client.disconnect()
    }
  })
}

scenario('values of all types', async (open, key) => {
  const client = open()
  assert.equal(await client.set(key('s'), 'v', 'EX', 100, 'NX'), 'OK')
  assert.equal(await client.set(key('s'), 'w', 'NX'), null)
  assert.equal(await client.ttl(key('s')), 100)
  await client.hset(key('h'), { a: 1, b: 2 })
  assert.deepEqual(await client.hgetall(key('h')), { a: '1', b: '2' })
  await client.rpush(key('l'), 1, 2, 3)
  assert.deepEqual(await client.lrange(key('l'), 0, -1), ['1', '2', '3'])
  await client.sadd(key('set'), 'x', 'y')
  assert.deepEqual((await client.smembers(key('set'))).sort(), ['x', 'y'])
  await client.zadd(key('z'), 1.5, 'a', 2, 'b')
  assert.deepEqual(await client.zrange(key('z'), 0, -1, 'WITHSCORES'), ['a', '1.5', 'b', '2'])
  assert.equal(await client.type(key('z')), 'zset')
  await assert.rejects(client.lpush(key('s'), 'x'), { message: 'WRONGTYPE Operation against a key holding the wrong kind of value' })
})

scenario('transactions', async (open, key) => {
  const client = open()
  assert.deepEqual(await client.multi().set(key('a'), 1).incr(key('a')).hset(key('h'), 'f', 'v').hgetall(key('h')).exec(),
    [[null, 'OK'], [null, 2], [null, 1], [null, { f: 'v' }]])
  const [, [error], [, last]] = await client.multi().set(key('a'), 'x').incr(key('a')).set(key('b'), 'y').exec()
  assert.equal(error.message, 'ERR value is not an integer or out of range')
  assert.equal(last, 'OK')
  await client.multi({ pipeline: false })
  assert.equal(await client.set(key('c'), 'z'), 'QUEUED')
  assert.equal(await client.get(key('c')), 'QUEUED')
  assert.deepEqual(await client.exec(), [[null, 'OK'], [null, 'z']])
  await assert.rejects(client.multi().set(key('d')).exec(), /EXECABORT/)
  assert.equal(await client.exists(key('d')), 0)
})

scenario('scripts', async (open, key) => {
  const client = open()
  client.defineCommand('take', {
    numberOfKeys: 1,
    lua: 'local left = tonumber(redis.call("GET", KEYS[1]) or ARGV[1]) if left == 0 then return {0, false} end redis.call("SET", KEYS[1], left - 1) return {left - 1, "taken"}'
  })
  assert.deepEqual(await client.take(key('n'), 2), [1, 'taken'])
  assert.deepEqual(await client.take(key('n'), 2), [0, 'taken'])
  assert.deepEqual(await client.take(key('n'), 2), [0, null])
  assert.deepEqual(await client.multi().set(key('n'), 5).take(key('n'), 2).exec(), [[null, 'OK'], [null, [4, 'taken']]])
  await assert.rejects(client.eval('return redis.call("LPUSH", KEYS[1], 1)', 1, key('n')), /WRONGTYPE/)
})

scenario('pipelines', async (open, key) => {
  const client = open()
  const pipeline = client.pipeline()
  for (let i = 0; i < 500; i++) pipeline.incrby(key('n'), i)
  pipeline.lpush(key('n'), 'x').get(key('n'))
  const replies = await pipeline.exec()
  assert.equal(replies.length, 502)
  assert.deepEqual(replies[499], [null, 500 * 499 / 2])
  assert.match(replies[500][0].message, /^WRONGTYPE/)
  assert.deepEqual(replies[501], [null, String(500 * 499 / 2)])
  const automatic = open({ enableAutoPipelining: true })
  assert.deepEqual(await Promise.all([automatic.set(key('a'), 1), automatic.incr(key('a')), automatic.get(key('a'))]), ['OK', 2, '2'])
  assert.deepEqual(await client.pipeline().set(key('p'), 1).multi().incr(key('p')).get(key('p')).exec().exec(),
    [[null, 'OK'], [null, 'OK'], [null, 'QUEUED'], [null, 'QUEUED'], [null, [2, '2']]])
})

scenario('optimistic locks', async (open, key) => {
  let conflicts = 0
  const workers = [open(), open(), open(), open()]
  await Promise.all(workers.map(async client => {
    for (let done = 0; done < 20;) {
      await client.watch(key('n'))
      const n = Number(await client.get(key('n')))
      const replies = await client.multi().set(key('n'), n + 1).rpush(key('log'), n).exec()
      if (replies === null) conflicts++
      else done++
    }
  }))
  assert.equal(await workers[0].get(key('n')), '80')
  assert.deepEqual(await workers[0].lrange(key('log'), 0, -1), Array.from({ length: 80 }, (_, i) => String(i)))
  assert.ok(conflicts > 0, 'nothing was ever in conflict')
})

scenario('streams of scans', async (open, key) => {
  const client = open()
  const names = Array.from({ length: 250 }, (_, i) => key(`many/${i}`))
  await client.mset(names.flatMap(name => [name, '1']))
  const found = new Set()
  for await (const page of client.scanStream({ match: key('many/*'), count: 20 })) for (const name of page) found.add(name)
  assert.deepEqual([...found].sort(), names.sort())
  await client.zadd(key('z'), ...names.flatMap((name, i) => [i, name]))
  let members = 0
  for await (const page of client.zscanStream(key('z'))) members += page.length / 2
  assert.equal(members, 250)
})

scenario('waiting', async (open, key) => {
  const [client, other] = [open(), open()]
  const waiting = client.blpop(key('none'), key('queue'), 0)
  await other.rpush(key('queue'), 'job')
  assert.deepEqual(await waiting, [key('queue'), 'job'])
  assert.equal(await client.brpop(key('queue'), 0.02), null)
})

scenario('channels', async (open, key) => {
  const [listener, other] = [open(), open()]
  const heard = []
  const all = new Promise(resolve => {
    listener.on('message', (channel, message) => heard.push([channel, message]))
    listener.on('pmessage', (_, channel, message) => heard.push([channel, message]) === 3 && resolve())
  })
  assert.equal(await listener.subscribe(key('news'), key('weather')), 2)
  assert.equal(await listener.psubscribe(key('n*')), 3)
  assert.equal(await other.publish(key('weather'), 'rain'), 1)
  assert.equal(await other.publish(key('news'), 'one'), 2)
  await all
  assert.deepEqual(heard, [[key('weather'), 'rain'], [key('news'), 'one'], [key('news'), 'one']])
  assert.equal(await listener.unsubscribe(key('news'), key('weather')), 1)
  assert.equal(await listener.punsubscribe(key('n*')), 0)
  await listener.set(key('k'), 'v')
})
