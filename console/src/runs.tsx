import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { known } from './feed.js'
import { moment } from './format.js'
import { RunTable, startOf, statusOf } from './list.js'
import { go, link, query } from './route.js'
import { get } from './session.js'
import { actionOf, annotation, type Run, statuses } from './types.js'

const pageSize = 200 // of the API
const mostPages = 10 // that are looked at for one more page of matches
const wanted = 100

interface Filter { action: string, status: string, start: string, text: string, parts: string, upto: string }

function filterOf (q: URLSearchParams): Filter {
  const value = (name: string): string => q.get(name) ?? ''
  return { action: value('action'), status: value('status'), start: value('start'), text: value('text'), parts: value('parts'), upto: value('upto') }
}

function fits (run: Run, f: Filter): boolean {
  if (f.parts === '' && annotation(run, 'causedBy') === 'sequence') return false
  if (f.action !== '' && actionOf(run) !== f.action) return false
  if (f.status !== '' && statusOf(run) !== f.status) return false
  if (f.start !== '' && startOf(run) !== f.start) return false
  return f.text === '' || `${run.activationId} ${actionOf(run)}`.includes(f.text)
}

/** Finds the newest runs that fit, and where to look further: the start of the last one that was looked at. */
async function find (f: Filter, signal: AbortSignal): Promise<{ runs: Run[], next: string }> {
  const runs = new Map<string, Run>()
  let upto = f.upto
  for (let page = 0; page < mostPages && runs.size < wanted; page++) {
    const q = new URLSearchParams({ limit: String(pageSize) })
    if (upto !== '') q.set('upto', upto)
    if (f.action !== '') q.set('name', f.action)
    const list = await get<Run[]>('activations?' + q.toString(), signal)
    for (const run of list) if (fits(run, f)) runs.set(run.activationId, run)
    const end = list.at(-1)
    if (end === undefined || list.length < pageSize) return { runs: [...runs.values()], next: '' }
    upto = String(String(end.start) === upto ? end.start - 1 : end.start)
  }
  return { runs: [...runs.values()], next: upto }
}

export function Runs () {
  const f = filterOf(query.value)
  const found = useSignal<{ runs: Run[], next: string } | undefined>(undefined)
  const fault = useSignal('')
  const key = JSON.stringify(f)
  useEffect(() => {
    const stop = new AbortController()
    fault.value = ''
    find(f, stop.signal).then(
      value => { if (!stop.signal.aborted) found.value = value },
      (error: unknown) => { if (!stop.signal.aborted) fault.value = String(error) })
    return () => stop.abort()
  }, [key])
  const set = (change: Partial<Filter>): void => go(link(['runs'], { ...f, upto: '', ...change }), true)
  const listed = found.value?.runs ?? []
  const ids = new Set(listed.map(run => run.activationId))
  const fresh = f.upto === '' ? known.value.ended.filter(run => !ids.has(run.activationId) && fits(run, f)) : []
  const runs = [...fresh, ...listed].sort((a, b) => b.start - a.start)
  return (
    <main>
      <h1>Runs</h1>
      <form class="filters" onSubmit={e => e.preventDefault()}>
        <label>Action <input value={f.action} onChange={e => set({ action: e.currentTarget.value.trim() })} /></label>
        <label>Status
          <select value={f.status} onChange={e => set({ status: e.currentTarget.value })}>
            <option value="">any</option>
            {statuses.map(s => <option key={s}>{s}</option>)}
          </select>
        </label>
        <label>Start
          <select value={f.start} onChange={e => set({ start: e.currentTarget.value })}>
            <option value="">any</option>
            <option>cold</option>
            <option>cached</option>
          </select>
        </label>
        <label>Id or name has <input type="search" value={f.text} onChange={e => set({ text: e.currentTarget.value })} /></label>
        <label class="check"><input type="checkbox" checked={f.parts !== ''} onChange={e => set({ parts: e.currentTarget.checked ? '1' : '' })} /> parts of workflows</label>
      </form>
      <p role="alert" class="fault">{fault}</p>
      {f.upto !== '' && <p>Begun by {moment(Number(f.upto))}. <a href={link(['runs'], { ...f, upto: '' })}>The newest</a></p>}
      {found.value !== undefined && runs.length === 0 && <p>No run fits.</p>}
      {runs.length > 0 && <RunTable runs={runs} />}
      {found.value !== undefined && found.value.next !== '' && <p><a href={link(['runs'], { ...f, upto: found.value.next })}>Older runs</a></p>}
    </main>
  )
}
