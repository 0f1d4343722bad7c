// Writes cases.jsonl: random compositions, run by the conductor that npm openwhisk-composer generates, each line
// {ast, input, calls: [{name, params}], result}. The actions answer as `answer` says; flow_test.go has the same.
// Run: npm install openwhisk-composer@0.12.0 openwhisk && node generate.js [cases] [seed] > cases.jsonl
const composer = require('openwhisk-composer')
const { generate } = require('openwhisk-composer/conductor')

let state = Number(process.argv[3] || 1)
const random = n => { // xorshift, so that a seed gives the same cases everywhere
  state ^= state << 13; state ^= state >>> 17; state ^= state << 5
  return (state >>> 0) % n
}

function compose (depth) {
  const c = () => compose(depth - 1)
  const some = () => Array.from({ length: random(4) }, c)
  if (depth === 0) return composer.action(['/_/put', '/_/test', '/_/fail', '/_/flip'][random(10) < 6 ? random(2) : random(4)])
  return [
    () => composer.sequence(...some()), () => composer.sequence(...some()), () => composer.if(c(), c(), c()), () => composer.if(c(), c()),
    () => composer.if_nosave(c(), c(), c()), () => composer.try(c(), c()), () => composer.finally(c(), c()), () => composer.retain(...some()),
    () => composer.retain_catch(...some()), () => composer.merge(...some()), () => composer.repeat(random(4), ...some()),
    () => composer.retry(random(3), ...some()), () => composer.literal([1, null, 'x', [], { value: true }, { error: 'l' }][random(6)]),
    () => composer.while('/_/flip', c()), () => composer.dowhile(c(), '/_/flip'), () => composer.while_nosave('/_/flip', c()),
    () => composer.dowhile_nosave(c(), '/_/flip'), () => composer.let({ params: random(3), x: 1 }, ...some()), () => composer.mask(...some()),
    () => composer.empty(), () => composer.seq('/_/prepare', composer.dynamic())
  ][random(21)]()
}

// What the n-th call of a run answers.
function answer (n, name, params) {
  switch (name) {
    case '/_/put': return Object.assign({}, params, { ['k' + n % 3]: n })
    case '/_/test': return { value: n % 2 === 0, seen: params }
    case '/_/flip': return Object.assign({}, params, { value: n % 3 !== 0 })
    case '/_/fail': return n % 2 === 0 ? { error: 'failed ' + n, detail: params } : params
    case '/_/prepare': return n % 4 === 3 ? params : { type: 'action', name: '/_/put', params }
  }
}

async function run (main, input) {
  const calls = []
  let r = await main(input)
  while (r.action) {
    if (calls.length > 60) return null
    const params = JSON.parse(JSON.stringify(r.params))
    calls.push({ name: r.action, params })
    r = await main(Object.assign({}, answer(calls.length, r.action, params), JSON.parse(JSON.stringify(r.state))))
  }
  return { calls, result: r.error !== undefined ? { error: r.error } : r.params }
}

async function all () {
  process.env.__OW_ACTIVATION_ID = 'x'
  console.log = console.error = () => {}
  for (let left = Number(process.argv[2] || 300); left > 0;) {
    const composition = compose(1 + random(4)).compile()
    const { action } = generate({ name: 'c', ...composition })
    const main = new Function('require', action.exec.code + ';return main')(require)
    const input = [{}, { n: 1 }, { value: true, s: 'é<' }, { error: 'in' }][random(4)]
    const outcome = await run(main, JSON.parse(JSON.stringify(input)))
    if (outcome === null) continue
    process.stdout.write(JSON.stringify({ ast: composition.ast, input, ...outcome }) + '\n')
    left--
  }
}
all()
