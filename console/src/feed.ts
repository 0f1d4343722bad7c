// The feed: what begins, writes and ends now. One connection serves all screens of a tab. It is resumed after the last event. A tab that is
// not seen has none: a browser gives all tabs of an address six connections without TLS, and what asked for a seventh would wait.
import { effect, signal } from '@preact/signals'

import { ask, session } from './session.js'
import type { Run } from './types.js'

/** An activation that runs, with the lines that it has written. */
export interface Running { run: Run, lines: string[] }

const mostLines = 1000 // that are kept of one that runs
const mostLine = 10_000 // characters of each
const pause = 100 // ms between changes of what is shown
const mostEnded = 200
const patience = [250, 500, 1000, 2000, 5000] // ms until it connects again

/** What is known: what runs, by its id, and what ended, the newest first. */
export interface Known { running: ReadonlyMap<string, Running>, ended: readonly Run[] }

export const known = signal<Known>({ running: new Map(), ended: [] })
export const connected = signal(false)

interface Line { activationId: string, number: number, line: string }

let last = ''
let running = new Map<string, Running>()
let ended: Run[] = []
let timer = 0

function forget (): void {
  last = ''
  running = new Map()
  ended = []
  known.value = { running, ended }
}

/** Shows changes together: many events may come at once. */
function show (): void {
  if (timer !== 0) return
  timer = setTimeout(() => {
    timer = 0
    known.value = { running, ended: [...ended] }
  }, pause)
}

function take (kind: string, data: string): void {
  if (kind === 'begun') {
    const run = JSON.parse(data) as Run
    if (!running.has(run.activationId)) running.set(run.activationId, { run, lines: [] })
  } else if (kind === 'line') {
    const line = JSON.parse(data) as Line
    const lines = running.get(line.activationId)?.lines
    if (lines !== undefined && line.number >= lines.length && lines.length < mostLines) lines.push(line.line.slice(0, mostLine))
  } else if (kind === 'ended') {
    const run = JSON.parse(data) as Run
    running.delete(run.activationId)
    if (!ended.some(e => e.activationId === run.activationId)) ended = [run, ...ended].slice(0, mostEnded)
  }
  show()
}

/** Reads server-sent events until the connection ends. */
async function read (body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
  const from = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await from.read()
    if (done) return
    text += value
    const events = text.split('\n\n')
    text = events.pop() ?? ''
    for (const event of events) {
      let kind = ''
      let data = ''
      for (const line of event.split('\n')) {
        if (line.startsWith('id: ')) last = line.slice(4)
        else if (line.startsWith('event: ')) kind = line.slice(7)
        else if (line.startsWith('data: ')) data = line.slice(6)
      }
      take(kind, data)
    }
  }
}

async function follow (signal: AbortSignal): Promise<void> {
  for (let tries = 0; !signal.aborted; tries++) {
    try {
      const answer = await ask('feed', { signal, headers: last === '' ? {} : { 'Last-Event-ID': last } })
      if (answer.ok && answer.body !== null) {
        connected.value = true
        tries = 0
        running = new Map() // it begins with all that run
        show()
        await read(answer.body)
      }
    } catch { /* the server is away */ }
    connected.value = false
    if (!signal.aborted) await new Promise(resolve => setTimeout(resolve, patience[Math.min(tries, patience.length - 1)]))
  }
}

const hidden = signal(document.hidden)
document.addEventListener('visibilitychange', () => { hidden.value = document.hidden })

let of: string | undefined // whose events are known: the token of the session

effect(() => {
  const token = session.value?.token
  if (token !== of) forget()
  of = token
  if (token === undefined || hidden.value) return
  const stop = new AbortController()
  void follow(stop.signal)
  return () => stop.abort()
})
