// The session. Its cookie is out of reach of scripts. The token is kept in this origin's storage, so that all tabs have it: a page of
// another port of the same host cannot read it, nor put another one in its place.
import { effect, signal } from '@preact/signals'

export interface Session { namespace: string, token: string, expires: number, api: string }

const place = 'forerun-session'

function stored (): Session | null {
  try {
    const found = JSON.parse(localStorage.getItem(place) ?? 'null') as Session | null
    return found !== null && found.expires > Date.now() ? found : null
  } catch {
    return null
  }
}

export const session = signal<Session | null>(stored())

addEventListener('storage', e => { if (e.key === place || e.key === null) session.value = stored() }) // another tab logged in or out

effect(() => {
  if (session.value === null) localStorage.removeItem(place)
  else localStorage.setItem(place, JSON.stringify(session.value))
})

/** An answer that is not a success. */
export class Refused extends Error {
  constructor (readonly status: number, message: string) { super(message) }
}

async function refused (answer: Response): Promise<Refused> {
  let message = `the server answered ${answer.status}`
  try {
    const document = await answer.json() as { error?: unknown }
    if (typeof document.error === 'string') message = document.error
  } catch { /* it is not JSON */ }
  return new Refused(answer.status, message)
}

/** Asks the API. path begins below the namespace: "actions". */
export async function ask (path: string, init: RequestInit = {}): Promise<Response> {
  const of = session.value
  const headers = new Headers(init.headers)
  headers.set('X-Forerun-Console', of?.token ?? '')
  const answer = await fetch('/api/v1/namespaces/_/' + path, { ...init, headers, cache: 'no-store', redirect: 'error' })
  if (answer.status === 401 && session.value?.token === of?.token) session.value = null
  return answer
}

/** Gets a JSON document of the API. */
export async function get<T> (path: string, signal?: AbortSignal): Promise<T> {
  const answer = await ask(path, signal === undefined ? {} : { signal })
  if (!answer.ok) throw await refused(answer)
  return await answer.json() as T
}

export async function login (key: string): Promise<void> {
  const answer = await fetch('/console/login', {
    method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Forerun-Console': session.value?.token ?? '' }, body: JSON.stringify({ key })
  })
  if (!answer.ok) throw await refused(answer)
  session.value = await answer.json() as Session
}

/** Ends the session of all tabs, and leaves nothing of it in the browser: the inputs that Try keeps go, too. */
export async function logout (): Promise<void> {
  const token = session.value?.token ?? ''
  session.value = null
  localStorage.clear()
  await fetch('/console/logout', { method: 'POST', headers: { 'X-Forerun-Console': token } })
}
