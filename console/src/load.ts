import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** What comes of a question to the API. */
export interface Loaded<T> { value?: T, error?: Error }

/** Asks once for each key, and forgets the answer to an earlier one. */
export function useLoaded<T> (key: string, ask: (signal: AbortSignal) => Promise<T>): Signal<Loaded<T>> {
  const loaded = useSignal<Loaded<T>>({})
  useEffect(() => {
    const stop = new AbortController()
    ask(stop.signal).then(
      value => { if (!stop.signal.aborted) loaded.value = { value } },
      (error: unknown) => { if (!stop.signal.aborted) loaded.value = { error: error instanceof Error ? error : new Error(String(error)) } })
    return () => stop.abort()
  }, [key])
  return loaded
}
