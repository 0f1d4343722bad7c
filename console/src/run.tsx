import { useSignal } from '@preact/signals'

import { known } from './feed.js'
import { length, moment, visible } from './format.js'
import { statusOf } from './list.js'
import { useLoaded } from './load.js'
import { link } from './route.js'
import { get, Refused } from './session.js'
import { actionOf, annotation, type Json, type RunRecord, type Trace } from './types.js'
import { Waterfall } from './waterfall.js'

const mostLines = 1000 // of a log that are shown at first
const mostResult = 100_000 // characters of a result

interface Whole { record: RunRecord, trace: Trace | undefined }

async function read (id: string, signal: AbortSignal): Promise<Whole> {
  const at = 'activations/' + encodeURIComponent(id)
  const [record, trace] = await Promise.all([
    get<RunRecord>(at, signal),
    get<Trace>(at + '/trace', signal).catch((error: unknown) => {
      if (error instanceof Refused && error.status !== 401) return undefined // of a trigger, or of what runs
      throw error
    })
  ])
  return { record, trace }
}

export function RunPage ({ id }: { id: string }) {
  const over = known.value.ended.some(run => run.activationId === id)
  const whole = useLoaded(`${id} ${String(over)}`, signal => read(id, signal))
  const { value, error } = whole.value
  if (value !== undefined) return <Ended {...value} />
  const live = known.value.running.get(id)
  if (live !== undefined) {
    return (
      <main>
        <h1>{actionOf(live.run)}</h1>
        <p>It runs since {moment(live.run.start)}.</p>
        <Log lines={live.lines} />
      </main>
    )
  }
  return <main><h1>Run</h1>{error === undefined ? <p>Loading</p> : <p role="alert" class="fault">{error.message}</p>}</main>
}

function Ended ({ record, trace }: Whole) {
  const workflow = annotation(record, 'kind') === 'sequence'
  const action = actionOf(record)
  return (
    <main>
      <h1>{action}</h1>
      <dl class="facts">
        <div><dt>Status</dt><dd class={record.response.success ? '' : 'fault'}>{record.response.status || statusOf(record)}</dd></div>
        <div><dt>Took</dt><dd>{length(record.duration ?? 0)}</dd></div>
        <div><dt>Began</dt><dd>{moment(record.start)}</dd></div>
        <div><dt>Id</dt><dd><code>{record.activationId}</code></dd></div>
        {record.cause !== undefined && <div><dt>Part of</dt><dd><a href={link(['runs', record.cause])}>{record.cause}</a></dd></div>}
      </dl>
      <p><a href={link(['try', ...action.split('/')])}>Try it</a> <a href={link(['runs'], { action })}>Runs of the action</a></p>
      {trace !== undefined && <Waterfall trace={trace} shown={record.activationId} />}
      <Result result={record.response.result} />
      {!workflow && <Log lines={record.logs} />}
    </main>
  )
}

/** A result is shown as text. */
function Result ({ result }: { result: Json }) {
  const all = useSignal(false)
  const text = JSON.stringify(result, null, 2) ?? ''
  const cut = !all.value && text.length > mostResult
  return (
    <section aria-labelledby="result">
      <h2 id="result">Result</h2>
      <pre tabIndex={0}>{visible(cut ? text.slice(0, mostResult) : text)}</pre>
      {cut && <button type="button" onClick={() => { all.value = true }}>Show all {text.length} characters</button>}
    </section>
  )
}

/** A log is shown as text, each line apart. */
export function Log ({ lines }: { lines: readonly string[] }) {
  const all = useSignal(false)
  const shown = all.value ? lines : lines.slice(0, mostLines)
  return (
    <section aria-labelledby="log">
      <h2 id="log">Log</h2>
      {lines.length === 0 ? <p>It wrote nothing.</p> : <pre class="log" tabIndex={0}>{shown.map((line, i) => <bdi key={i}>{visible(line)}{'\n'}</bdi>)}</pre>}
      {shown.length < lines.length && <button type="button" onClick={() => { all.value = true }}>Show all {lines.length} lines</button>}
    </section>
  )
}
