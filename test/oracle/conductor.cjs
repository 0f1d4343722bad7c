// The conductors of all compositions in one action, each made of the code that npm openwhisk-composer generates. Which one is to run is
// in composer's own settings for the OpenWhisk client, which it takes along to wherever a composition goes on.
const { driver, compositions } = require('./cases.json')
const redis = require('redis')

let client
const shared = { createClient: (...settings) => (client = client || redis.createClient(...settings)) }
const load = name => name === 'redis' ? shared : require(name)

let current
function conductor (index) {
  if (!current || current.index !== index) {
    const code = `const composition = ${JSON.stringify(compositions[index])}\n${driver}\nreturn main`
    current = { index, main: new Function('require', code)(load) }
  }
  return current.main
}

exports.main = params => {
  params.$composer.redis = { uri: process.env.REDIS_URL }
  return conductor(params.$composer.openwhisk.case)(params)
}
