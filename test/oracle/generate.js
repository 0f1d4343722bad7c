/*
 * Writes random compositions with what the conductor that npm openwhisk-composer generates runs them from, as one JSON document:
 * {driver, cases: [{ast, composition, input, ordered}]}. The driver is the code of every such conductor behind its composition.
 * Run: node generate.js COUNT SEED
 */
import composer from 'openwhisk-composer'
import conductor from 'openwhisk-composer/conductor.js'

const seed = BigInt(process.argv[3])
let state = Number(BigInt.asUintN(32, seed ^ (seed >> 32n))) || 1
const random = n => { // xorshift, so that a seed gives the same compositions everywhere
  state ^= state << 13; state ^= state >>> 17; state ^= state << 5
  return (state >>> 0) % n
}
const countDown = composer.function('() => c-- > 0')
const pick = list => list[random(list.length)]
const some = (make, most) => Array.from({ length: random(most + 1) }, make)

// Functions written in line: some that go on, some that fail, and some that use the variables x and y, which a let around declares, most of
// the time. Those read one before they set it, and so fail where it is not declared, in place of making it a variable of the process.
const plain = [
  'p => { p.seen = true }', 'p => p.value', '() => null', 'p => [p]', '() => true', '() => 0', '() => ""', '({ n }) => ({ n: (n || 0) + 1, value: n < 3 })',
  'p => ({ keys: Object.keys(p).sort(), date: new Date(5), not: NaN, none: undefined })', 'function (p) { return p }',
  'function named ({ value }) { return value && value.n }', '() => require("path").join("a", "..", "b")', 'p => ({ value: [p, 1, "two", { three: 3 }] })',
  '() => ({ type: "action", name: "/_/put", params: { d: 1 } })', 'p => Object.assign(p, { value: !p.value })', 'p => { delete p.n; delete p.value }'
]
const failing = [
  'p => ({ error: p.n })', '() => ({ error: null })', '() => ({ error: "said" })', '() => { throw new Error("thrown") }', '() => () => 1',
  'async () => { throw "later" }', 'no javascript at all'
]
const scoped = [
  'p => { x++ }', '() => ({ value: x })', 'p => Object.assign(p, { x })', 'function (p) { y; y = p; return x }', 'function named () { return y }',
  'p => { x; x = { from: p }; throw new Error("thrown") }', 'async p => { const r = { x }; x = 7; await null; x = 8; return r }',
  '() => { x; x = undefined }', 'p => { y; y = x; x = p.n; return { x, y } }', 'p => { x += 1; y = [x, y] }'
]
// These end a composition whatever is around them, which leaves composer's forks waiting for ever.
const fatal = ['() => 10n', '() => Symbol("s")', 'p => { p.p = p }']

const values = [1, null, 'x', [], {}, { value: true }, { value: false, n: 2 }, { error: 'l' }, { value: [1, { n: 2 }, null] }, { value: [] }, { value: { length: 0 } }]

/*
 * What a composition may be made of at some place: `ordered` says that nothing runs beside anything else, so that what the actions answer may
 * depend on the calls before; `forks` is how many forks may be around each other; `x` that the variables may be there.
 */
function compose (depth, c) {
  const again = () => compose(depth - 1, c)
  const within = () => compose(depth - 1, { ...c, x: true })
  if (depth <= 0) return leaf(c)
  const makers = [
    () => composer.sequence(...some(again, 3)), () => composer.seq(again(), again()), () => composer.if(again(), again(), again()),
    () => composer.if(again(), again()), () => composer.if_nosave(again(), again(), again()), () => composer.try(again(), again()),
    () => composer.try(again(), again()), () => composer.finally(again(), again()), () => composer.retain(...some(again, 2)),
    () => composer.retain_catch(...some(again, 2)), () => composer.merge(...some(again, 2)), () => composer.repeat(random(3), ...some(again, 2)),
    () => composer.retry(random(3), ...some(again, 2)), () => composer.mask(...some(again, 2)),
    () => composer.let({ x: pick([0, 1, null, 'x', { a: 1 }]) }, within(), within()),
    () => composer.let({ x: random(3), y: [1] }, ...some(within, 3)), () => composer.let({ params: 1, count: 'c', value: {} }, again()),
    () => composer.let({ c: random(3) }, composer.while(countDown, again())),
    () => composer.let({ c: random(3) }, composer.dowhile_nosave(composer.mask(again()), countDown)),
    () => composer.let({ c: random(3) }, composer.while_nosave(composer.function('() => ({ value: c-- > 0 })'), composer.mask(again()))),
    () => leaf(c)
  ]
  if (c.ordered) {
    makers.push(
      () => composer.while('/_/flip', again()), () => composer.dowhile(again(), '/_/flip'), () => composer.while_nosave('/_/flip', again()),
      () => composer.dowhile_nosave(again(), '/_/flip'))
  } else if (c.forks > 0) {
    const branch = () => compose(depth - 1, { ...c, forks: c.forks - 1, fork: true })
    const fork = [
      () => composer.parallel(...some(branch, 3)), () => composer.par(branch(), branch()), () => composer.map(branch()),
      () => composer.seq(composer.value({ value: [1, { n: 2 }, 'three'] }), composer.map(...some(branch, 2))),
      () => composer.seq('/_/begin', composer.async(composer.finally(composer.seq(...some(branch, 2)), '/_/done')))
    ]
    makers.push(...fork, ...fork)
  }
  return pick(makers)()
}

function leaf (c) {
  const from = random(30)
  if (from < 17) return composer.action(pick(['/_/put', '/_/put', '/_/put', '/_/test', '/_/flip', '/_/fail', '/_/line']))
  if (from === 17) return composer.seq('/_/prepare', composer.dynamic())
  if (from === 18) return pick([composer.dynamic(), composer.action('/_/missing'), composer.empty(), composer.function(pick(c.fork ? failing : fatal))])
  if (from < 22) return composer[pick(['literal', 'value'])](pick(values))
  if (from === 22) return composer.function(pick(failing))
  return composer.function(pick(c.x && random(3) > 0 ? scoped : plain))
}

const cases = []
let driver
for (let left = Number(process.argv[2]); left > 0; left--) {
  const ordered = random(10) < 6
  const composition = compose(2 + random(4), { ordered, forks: 1 + random(6) / 5 | 0, fork: false, x: false })
  const compiled = composer.sequence(composition).compile()
  if (!driver) {
    const { action } = conductor.generate({ name: 'composition', ...compiled })
    driver = action.exec.code.slice(action.exec.code.indexOf('// do not edit'))
  }
  const input = pick([{}, { n: 1 }, { value: true, s: 'é<\u2028' }, { value: 0 }, { n: -1.5, value: 'yes' }, { error: 'in' }, { value: [3, { n: 4 }, [5]] }, { $x: { deep: [null, 1.5, 1e21] } }])
  cases.push({ ast: compiled.ast, composition: compiled.composition, input, ordered })
}
process.stdout.write(JSON.stringify({ driver, cases }))
