import { Copied } from './copied.js'
import { known } from './feed.js'
import { moment } from './format.js'
import { RunTable } from './list.js'
import { useLoaded } from './load.js'
import { link } from './route.js'
import { get } from './session.js'
import { actionOf, type Run } from './types.js'

const first = `printf 'def main(args):\\n    return {"greeting": "hello " + args.get("name", "you")}\\n' > hello.py
forerun action create hello hello.py
forerun invoke hello -p name Ada -r`

export function Start () {
  const latest = useLoaded('', signal => get<Run[]>('activations?limit=20', signal))
  const { value, error } = latest.value
  const { running, ended } = known.value
  const told = new Set(ended.map(run => run.activationId))
  const runs = [...ended, ...(value ?? []).filter(run => !told.has(run.activationId))].sort((a, b) => b.start - a.start).slice(0, 20)
  return (
    <main>
      <h1>Start</h1>
      {error !== undefined && <p role="alert" class="fault">{error.message}</p>}
      <section aria-labelledby="now">
        <h2 id="now">Runs now</h2>
        {running.size === 0 && <p>Nothing runs.</p>}
        <ul>
          {[...running.values()].slice(-20).map(({ run, lines }) => (
            <li key={run.activationId}><a href={link(['runs', run.activationId])}>{actionOf(run)}</a> since {moment(run.start)}, {lines.length} lines</li>
          ))}
        </ul>
      </section>
      {value !== undefined && runs.length === 0 && (
        <section aria-labelledby="first">
          <h2 id="first">The first call</h2>
          <p>Type these lines in a terminal where <code>forerun login</code> knows this server:</p>
          <Copied text={first} />
        </section>
      )}
      {runs.length > 0 && (
        <section aria-labelledby="latest">
          <h2 id="latest">Latest runs</h2>
          <RunTable runs={runs} />
          <p><a href={link(['runs'])}>All runs</a></p>
        </section>
      )}
    </main>
  )
}
