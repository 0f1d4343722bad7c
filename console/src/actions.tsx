import { useSignal } from '@preact/signals'

import { length, moment } from './format.js'
import { useLoaded } from './load.js'
import { link } from './route.js'
import { get } from './session.js'
import { type Action, annotation } from './types.js'

const pageSize = 200

/** Reads all pages: a tenant has a bounded number of actions. */
async function all (signal: AbortSignal): Promise<Action[]> {
  const list: Action[] = []
  for (;;) {
    const page = await get<Action[]>(`actions?limit=${pageSize}&skip=${list.length}`, signal)
    list.push(...page)
    if (page.length < pageSize) return list
  }
}

/** The segments of an action's name: of one in a package, first that. */
export function segmentsOf (action: Action): string[] {
  return [...action.namespace.split('/').slice(1), action.name]
}

export function Actions () {
  const loaded = useLoaded('', all)
  const text = useSignal('')
  const { value, error } = loaded.value
  const shown = (value ?? []).filter(a => segmentsOf(a).join('/').includes(text.value))
  return (
    <main>
      <h1>Actions</h1>
      {error !== undefined && <p role="alert" class="fault">{error.message}</p>}
      <label>Name has <input type="search" value={text} onInput={e => { text.value = e.currentTarget.value }} /></label>
      {value !== undefined && shown.length === 0 && <p>No action fits.</p>}
      {shown.length > 0 && (
        <table>
          <thead><tr><th scope="col">Action</th><th scope="col">Kind</th><th scope="col">Limits</th><th scope="col">Changed</th><th scope="col">Version</th><th scope="col">Runs</th></tr></thead>
          <tbody>
            {shown.map(a => {
              const segments = segmentsOf(a)
              const name = segments.join('/')
              return (
                <tr key={name}>
                  <td><a href={link(['try', ...segments])}>{name}</a></td>
                  <td>{String(annotation(a, 'exec') ?? '')}</td>
                  <td>{length(a.limits.timeout)}, {a.limits.memory} MB</td>
                  <td>{moment(a.updated)}</td>
                  <td>{a.version}</td>
                  <td><a href={link(['runs'], { action: name })}>runs</a></td>
                </tr>
              )
            })}
          </tbody>
        </table>
      )}
    </main>
  )
}
