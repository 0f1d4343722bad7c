// A link of a chain that runs ahead, whose process serves one activation after the other: what link of ahead_faults_test.go is in Python.
const { createClient } = require('redis')

let state

exports.main = async ({ link, n }) => {
  process.title = `link${link}` // the name of the process, too
  if (!state) {
    state = createClient({ url: process.env.REDIS_URL })
    await state.connect()
  }
  await state.rPush(`did:${link}`, process.env.__OW_TRANSACTION_ID)
  await new Promise(resolve => setTimeout(resolve, 20))
  await state.incr(`count:${link}`)
  if (link === 2) await state.publish('news', 'x')
  console.log(process.env.__OW_ACTIVATION_ID, 'of', link)
  return { n }
}
