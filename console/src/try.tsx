import { useSignal } from '@preact/signals'

import { Copied } from './copied.js'
import { visible } from './format.js'
import { link } from './route.js'
import { ask, session } from './session.js'

const mostSaved = 10 // inputs of an action

function saved (place: string): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(place) ?? '[]')
    return Array.isArray(found) ? found.filter(x => typeof x === 'string') : []
  } catch {
    return []
  }
}

/** A word of a shell. */
function quoted (text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** Why an input cannot be sent; empty: it can. */
function faultOf (input: string): string {
  try {
    const value: unknown = JSON.parse(input)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? '' : 'The input of an action is a JSON object.'
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : ''}`
  }
}

interface Outcome { status: number, id: string | null, text: string, took: number }

export function Try ({ name }: { name: string }) {
  const place = `forerun-input ${session.value?.namespace ?? ''} ${name}`
  const inputs = useSignal(saved(place))
  const input = useSignal(inputs.value[0] ?? '{}')
  const fault = useSignal('')
  const busy = useSignal(false)
  const outcome = useSignal<Outcome | null>(null)
  const path = 'actions/' + name.split('/').map(encodeURIComponent).join('/')
  const invoke = async (): Promise<void> => {
    fault.value = faultOf(input.value)
    if (fault.value !== '' || busy.value) return
    busy.value = true
    const begun = performance.now()
    try {
      const answer = await ask(path + '?blocking=true', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: input.value })
      const text = await answer.text()
      outcome.value = { status: answer.status, id: answer.headers.get('X-Openwhisk-Activation-Id'), text: resultIn(text), took: performance.now() - begun }
      inputs.value = [input.value, ...inputs.value.filter(x => x !== input.value)].slice(0, mostSaved)
      localStorage.setItem(place, JSON.stringify(inputs.value))
    } catch (error) {
      fault.value = error instanceof Error ? error.message : String(error)
    }
    busy.value = false
  }
  const { value: done } = outcome
  return (
    <main>
      <h1>Try {name}</h1>
      <form onSubmit={e => { e.preventDefault(); void invoke() }}>
        <label for="input">Input, a JSON object</label>
        <textarea
          id="input" rows={8} spellcheck={false} value={input} onInput={e => { input.value = e.currentTarget.value }}
          onKeyDown={e => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) void invoke() }}
        />
        {inputs.value.length > 0 && (
          <label>Used before <select onChange={e => { input.value = inputs.value[e.currentTarget.selectedIndex] ?? input.value }}>
            {inputs.value.map(x => <option key={x}>{x.slice(0, 80)}</option>)}
          </select></label>
        )}
        <button type="submit" disabled={busy}>Invoke</button>
        <p role="alert" class="fault">{fault}</p>
      </form>
      {done !== null && (
        <section aria-labelledby="outcome" aria-live="polite">
          <h2 id="outcome">Outcome</h2>
          <p><span class={done.status < 300 ? '' : 'fault'}>HTTP {done.status}</span> after {Math.round(done.took)} ms
            {done.id !== null && <> <a href={link(['runs', done.id])}>Show the run</a></>}
          </p>
          <pre tabIndex={0}>{visible(done.text)}</pre>
        </section>
      )}
      <section aria-labelledby="same">
        <h2 id="same">The same call</h2>
        <Copied text={`curl -u "$AUTH" -H 'Content-Type: application/json' -d ${quoted(input.value)} ${quoted(`${session.value?.api ?? ''}/api/v1/namespaces/_/${path}?blocking=true&result=true`)}`} />
        <Copied text={`printf '%s' ${quoted(input.value)} > input.json && forerun invoke ${quoted(name)} -P input.json -r`} />
      </section>
    </main>
  )
}

/** The result in an answer, with indentation. */
function resultIn (text: string): string {
  try {
    const document = JSON.parse(text) as { response?: { result?: unknown } }
    return JSON.stringify(document.response === undefined ? document : document.response.result, null, 2)
  } catch {
    return text
  }
}
