// The state of function.js with ioredis, which connects while the code is loaded, and tells when it has to do that again.
/* global heard, fill, told, number, failed */
const Redis = require('ioredis')
const state = new Redis(process.env.REDIS_URL).on('close', () => console.error('closed'))

const command = args => state.call(...args).then(told, failed)
const multi = async commands => (await state.multi(commands.map(([name, ...args]) => ['call', name, ...args])).exec()).map(([e, r]) => e ? failed(e) : told(r))

async function watch (key, more) {
  const own = state.duplicate()
  try {
    for (;;) {
      await own.watch(key)
      const now = number(await own.get(key) || 0) + more
      if (await own.multi().set(key, now).exec()) return now
    }
  } catch (e) { return failed(e) } finally { own.disconnect() }
}

async function listen (channel) {
  const own = state.duplicate()
  try {
    const message = new Promise(resolve => own.on('message', (_, word) => resolve(word)))
    await own.subscribe(channel)
    return [await state.publish(channel, 'word'), await message]
  } finally { own.disconnect() }
}

Object.assign(heard, {
  redis: (v, a) => command(fill(a, v)),
  multi: (v, [commands]) => multi(fill(commands, v)),
  watch: (v, [key, more]) => watch(fill(key, v), more),
  listen: (v, [channel]) => listen(fill(channel, v))
})
