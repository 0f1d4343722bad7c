// The npm client redis, unchanged, against the door for Redis clients of a running server, in RESP2 and RESP3.
import assert from 'node:assert/strict'
import test from 'node:test'

import { createClient, WatchError } from 'redis'

/**
 * Runs a scenario once for each protocol, each with keys of its own.
 * @param {string} name - of the scenario
 * @param {(open: () => Promise<object>, key: (name: string) => string) => Promise<void>} scenario - gets what opens a client
 */
function scenario (name, scenario) {
  for (const RESP of [2, 3]) {
    test(`${name}, RESP${RESP}`, { timeout: 180000 }, async () => {
      const clients = []
      const open = async () => {
        const client = createClient({ url: process.env.REDIS_URL, RESP, name: 'scenario' })
        clients.push(client)
        return client.connect()
      }
      try {
        await scenario(open, key => `redis/${name}/${RESP}/${key}`)
      } finally {
        for (const client of clients) client.destroy()
      }
    })
  }
}

scenario('values of all types', async (open, key) => {
  const client = await open()
  assert.equal(await client.set(key('s'), 'v', { expiration: { type: 'EX', value: 100 }, condition: 'NX' }), 'OK')
  assert.equal(await client.set(key('s'), 'w', { condition: 'NX' }), null)
  assert.equal(await client.ttl(key('s')), 100)
  await client.hSet(key('h'), { a: '1', b: '2' })
  assert.deepEqual({ ...await client.hGetAll(key('h')) }, { a: '1', b: '2' })
  await client.rPush(key('l'), ['1', '2', '3'])
  assert.deepEqual(await client.lRange(key('l'), 0, -1), ['1', '2', '3'])
  await client.sAdd(key('set'), ['x', 'y'])
  assert.deepEqual([...await client.sMembers(key('set'))].sort(), ['x', 'y'])
  await client.zAdd(key('z'), [{ score: 1.5, value: 'a' }, { score: 2, value: 'b' }])
  assert.deepEqual(await client.zRangeWithScores(key('z'), 0, -1), [{ value: 'a', score: 1.5 }, { value: 'b', score: 2 }])
  assert.equal(await client.zScore(key('z'), 'a'), 1.5)
  assert.deepEqual(await client.zPopMin(key('z')), { value: 'a', score: 1.5 })
  assert.equal(await client.type(key('z')), 'zset')
  await assert.rejects(client.lPush(key('s'), 'x'), { message: 'WRONGTYPE Operation against a key holding the wrong kind of value' })
})

scenario('transactions', async (open, key) => {
  const client = await open()
  assert.deepEqual(await client.multi().set(key('a'), '1').incr(key('a')).get(key('a')).hSet(key('h'), 'f', 'v').hGetAll(key('h')).exec().then(r => JSON.parse(JSON.stringify(r))),
    ['OK', 2, '2', 1, { f: 'v' }])
  const failed = await client.multi().set(key('a'), 'x').incr(key('a')).set(key('b'), 'y').exec().catch(error => error)
  assert.equal(failed.errorIndexes.length, 1)
  assert.equal(await client.get(key('b')), 'y', 'an error inside does not end the others')
  const pipelined = await client.multi().set(key('c'), '1').incr(key('c')).execAsPipeline()
  assert.deepEqual(pipelined, ['OK', 2])
})

scenario('a conflict', async (open, key) => {
  const [client, other] = [await open(), await open()]
  await client.watch(key('k'))
  await other.set(key('k'), 'theirs')
  await assert.rejects(client.multi().set(key('k'), 'mine').exec(), WatchError)
  assert.equal(await client.get(key('k')), 'theirs')
  await client.watch([key('k'), key('l')])
  await client.unwatch()
  await other.set(key('k'), 'again')
  assert.deepEqual(await client.multi().get(key('k')).exec(), ['again'])
})

scenario('optimistic locks', async (open, key) => {
  const workers = await Promise.all([1, 2, 3, 4].map(open))
  let conflicts = 0
  await Promise.all(workers.map(async client => {
    for (let done = 0; done < 20;) {
      await client.watch(key('n'))
      const n = Number(await client.get(key('n')))
      try {
        await client.multi().set(key('n'), String(n + 1)).rPush(key('log'), String(n)).exec()
        done++
      } catch (error) {
        assert.ok(error instanceof WatchError)
        conflicts++
      }
    }
  }))
  assert.equal(await workers[0].get(key('n')), '80')
  assert.deepEqual(await workers[0].lRange(key('log'), 0, -1), Array.from({ length: 80 }, (_, i) => String(i)))
  assert.ok(conflicts > 0, 'nothing was ever in conflict')
})

scenario('commands sent together', async (open, key) => {
  const client = await open()
  const replies = await Promise.all(Array.from({ length: 500 }, (_, i) => client.incrBy(key('n'), i)))
  assert.equal(replies.at(-1), 500 * 499 / 2)
  assert.deepEqual(replies, [...replies].sort((a, b) => a - b))
})

scenario('iterators', async (open, key) => {
  const client = await open()
  const names = Array.from({ length: 250 }, (_, i) => key(`many/${i}`))
  await client.mSet(Object.fromEntries(names.map(name => [name, '1'])))
  const found = new Set()
  for await (const page of client.scanIterator({ MATCH: key('many/*'), COUNT: 20 })) for (const name of page) found.add(name)
  assert.deepEqual([...found].sort(), names.sort())
  for await (const page of client.scanIterator({ MATCH: key('many/*'), COUNT: 20 })) if (page.length > 0) await client.del(page)
  assert.deepEqual(await client.keys(key('many/*')), [], 'who deletes what a SCAN shows misses nothing')
  await client.hSet(key('h'), Object.fromEntries(names.map(name => [name, 'v'])))
  let fields = 0
  for await (const page of client.hScanIterator(key('h'))) fields += page.length
  assert.equal(fields, 250)
})

scenario('waiting', async (open, key) => {
  const [client, other] = [await open(), await open()]
  const waiting = client.blPop([key('none'), key('queue')], 0)
  await other.rPush(key('queue'), 'job')
  assert.deepEqual({ ...await waiting }, { key: key('queue'), element: 'job' })
  assert.equal(await client.blPop(key('queue'), 0.02), null)
})

scenario('channels', async (open, key) => {
  const [listener, other] = [await open(), await open()]
  const heard = []
  let enough
  const all = new Promise(resolve => { enough = resolve })
  const hear = (message, channel) => { if (heard.push([channel, message]) === 4) enough() }
  await listener.subscribe(key('news'), hear)
  await listener.pSubscribe(key('n*'), hear)
  assert.equal(await other.publish(key('news'), 'one'), 2)
  assert.equal(await other.publish(key('nothing'), 'two'), 1)
  await other.multi().publish(key('nobody'), 'three').publish(key('else'), 'four').exec()
  await all
  assert.deepEqual(heard, [[key('news'), 'one'], [key('news'), 'one'], [key('nothing'), 'two'], [key('nobody'), 'three']])
  await listener.unsubscribe(key('news'))
  await listener.pUnsubscribe(key('n*'))
  assert.equal(await other.publish(key('news'), 'late'), 0)
  assert.equal(String(await listener.ping()), 'PONG')
})
