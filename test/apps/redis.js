// The state of function.js with redis, which connects while the code is loaded, and tells when it has to do that again.
/* global heard, fill, told, number, failed */
const { createClient, WatchError } = require('redis')
const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()

const command = async args => (await ready).sendCommand(args.map(String)).then(told, failed)

async function multi (commands) {
  const m = (await ready).multi()
  for (const args of commands) m.addCommand(args.map(String))
  try {
    return (await m.exec()).map(told)
  } catch (e) {
    if (!e.replies) throw e
    return e.replies.map(r => r instanceof Error ? failed(r) : told(r))
  }
}

async function watch (key, more) {
  const own = await (await ready).duplicate().on('error', console.error).connect()
  try {
    for (;;) {
      await own.watch(key)
      const now = number(await own.get(key) || 0) + more
      try {
        await own.multi().set(key, String(now)).exec()
        return now
      } catch (e) {
        if (!(e instanceof WatchError)) throw e
      }
    }
  } catch (e) { return failed(e) } finally { own.destroy() }
}

async function listen (channel) {
  const state = await ready
  const own = await state.duplicate().on('error', console.error).connect()
  try {
    let hear
    const message = new Promise(resolve => { hear = resolve })
    await own.subscribe(channel, hear)
    return [await state.publish(channel, 'word'), await message]
  } finally { own.destroy() }
}

Object.assign(heard, {
  redis: (v, a) => command(fill(a, v)),
  multi: (v, [commands]) => multi(fill(commands, v)),
  watch: (v, [key, more]) => watch(fill(key, v), more),
  listen: (v, [channel]) => listen(fill(channel, v))
})
