// Compiled, not run: what a program that uses the package may write, and what it may not.
import { ActionFailed, APIError, Client, ForerunError, fire, invoke, microtask, type Document } from 'forerun'

export async function main (args: { flight: string }): Promise<Document> {
  const price = await invoke<{ amount: number }>('price', { flight: args.flight })
  const anything: Document = await invoke('price')
  const id: string = await invoke('mail', undefined, { blocking: false, idempotencyKey: 'order 7' })
  const fired: string | null = await fire('booked')
  const client = new Client({ host: 'http://127.0.0.1:3233', timeout: 1000 })
  const lines: string[] = await client.activations.logs(id)
  const parts = await invoke<number[]>('split')
  const later: number[] = await client.activations.result<number[]>(id)
  // @ts-expect-error: the result of an invocation that is not waited for is not there
  const wrong: Document = await invoke('mail', {}, { blocking: false })
  const read: number = await microtask('read', { cpu: 0.1 }, async () => 1)
  // @ts-expect-error: parameters are an object
  await invoke('price', 'UA1545')
  return { total: price.amount + 12 + read, anything, fired, lines, wrong, parts: parts.concat(later) }
}

export function explain (error: unknown): string {
  if (error instanceof ActionFailed) return `${error.activationId}: ${String(error.error)}`
  if (error instanceof APIError) return `${error.status} ${error.reason}`
  return error instanceof ForerunError ? error.message : 'unknown'
}
