import { useSignal } from '@preact/signals'

import { login } from './session.js'

export function Login () {
  const key = useSignal('')
  const fault = useSignal('')
  const busy = useSignal(false)
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault()
    busy.value = true
    fault.value = ''
    try {
      await login(key.value.trim())
    } catch (error) {
      fault.value = error instanceof Error ? error.message : String(error)
      busy.value = false
    }
  }
  return (
    <main class="login">
      <h1>Forerun console</h1>
      <form onSubmit={e => { void submit(e) }}>
        <label for="key">Key of a tenant, UUID:KEY</label>
        <input id="key" type="password" autocomplete="off" required value={key} onInput={e => { key.value = e.currentTarget.value }} />
        <button type="submit" disabled={busy}>Log in</button>
        <p role="alert" class="fault">{fault}</p>
        <p class="hint">It is the line AUTH= of the file wskprops in the server's data folder, or what <code>forerun tenant create</code> printed.</p>
      </form>
    </main>
  )
}
