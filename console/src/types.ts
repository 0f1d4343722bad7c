// The documents of the API that the console reads. docs/reference/api.md describes them.

/** A JSON value of a user: of anything nothing is known. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export interface KeyValue { key: string, value: Json }

/** An activation as in a list. */
export interface Run {
  activationId: string
  name: string
  start: number
  end?: number
  duration?: number
  statusCode?: number
  cause?: string
  annotations: KeyValue[]
}

/** The record of an activation. */
export interface RunRecord extends Run {
  logs: string[]
  response: { status: string, success: boolean, result: Json, size: number }
}

export interface Action {
  namespace: string
  name: string
  version: string
  updated: number
  annotations: KeyValue[]
  limits: { timeout: number, memory: number, logs: number }
}

export interface Bar { look: string, from: number, to: number }

export interface Slot {
  action: string
  title: string
  activationId?: string
  row: number
  depth: number
  program?: boolean
  state?: string
  critical?: number
  note?: string
  bars?: Bar[]
}

export interface Trace {
  begin: number
  wall: number
  wasted: number
  saved?: number
  inOrder?: number
  times: string
  counts: string
  slots: Slot[]
}

/** The value of an annotation; undefined: there is none. */
export function annotation (of: { annotations: KeyValue[] }, key: string): Json | undefined {
  return of.annotations.find(a => a.key === key)?.value
}

/** The name of an action below its namespace: "package/action" or "action". */
export function actionOf (run: Run): string {
  const path = annotation(run, 'path')
  return typeof path === 'string' ? path.split('/').slice(1).join('/') : run.name
}

export const statuses = ['success', 'application error', 'developer error', 'internal error']
