/** What an action is given: a JSON object. */
export type Params = Record<string, unknown>

/** A document of the API, as OpenWhisk describes it. */
export type Document = Record<string, unknown>

/** How to invoke an action. */
export interface InvokeOptions {
  /** Wait for the result; else the activation's id is the answer. Default: true. */
  blocking?: boolean
  /** How long to wait for the result, in milliseconds. Default and most: 60 s. */
  wait?: number
  /** A repeated request with the same key attaches to the first instead of running the action again. */
  idempotencyKey?: string
}

/** Invokes an action by NAME, PACKAGE/NAME or /NAMESPACE/PACKAGE/NAME. */
export interface Invoke {
  /** Returns the activation's id at once. */
  (name: string, params: Params | undefined, options: InvokeOptions & { blocking: false }): Promise<string>
  /**
   * Returns the result, an object or an array. Rejects with ActionFailed if the action ended with an error, with NotFinished if
   * it runs for longer than the wait, and with the other errors of this package if the API was not reached or refused.
   */
  <Result extends object = Document>(name: string, params?: Params, options?: InvokeOptions & { blocking?: true }): Promise<Result>
}

export const invoke: Invoke

/**
 * Fetches from the platform, over connections that are kept: a path that begins with a slash, or a URL with the platform's address. It shows the
 * caller's key below /api/v1/namespaces if none was given. Other addresses, and calls with options other than method, headers and body, are the
 * global fetch's.
 */
export const fetch: typeof globalThis.fetch

/** Fires a trigger; returns the id of its activation, or null if no rule follows it. */
export function fire (name: string, params?: Params): Promise<string | null>

/**
 * Does work in a phase of the function, and returns what the work returns. cpu is how many processors the phase needs, 0.0625 to 1024; default:
 * 1. The phase begins when the scheduler lets it in. Phases do not nest: an inner one ends the outer one, which is asked for again at the inner
 * one's end. Outside Forerun the work is done at once. Rejects with TypeError for a wrong name, and with RangeError for a wrong need.
 */
export function microtask<Result> (name: string, options: { cpu?: number }, work: () => Result | Promise<Result>): Promise<Result>

/**
 * How the API is reached. What is left out is looked up for each request: first in the environment that a function has, then
 * in the settings of `wsk` (WSK_CONFIG_FILE or ~/.wskprops).
 */
export interface ClientOptions {
  /** Like http://127.0.0.1:3233. */
  host?: string
  /** UUID:KEY. */
  auth?: string
  /** Default: the key's own. */
  namespace?: string
  /** For each wait on the network, in milliseconds. Default: 90 s. */
  timeout?: number
}

/** A client of one namespace. */
export class Client {
  constructor (options?: ClientOptions)
  readonly actions: Actions
  readonly activations: Activations
  readonly triggers: Triggers
}

export interface Actions {
  invoke: Invoke
  /** Lists the actions, the newest first; 30 unless limit (at most 200) says otherwise. */
  list (options?: { limit?: number, skip?: number }): Promise<Document[]>
  /** Returns what is deployed under a name, with its code. */
  get (name: string): Promise<Document>
}

export interface Activations {
  /** Lists activations, the newest first: of an action, between two times (ms since 1970), whole with docs. */
  list (options?: {
    name?: string, limit?: number, skip?: number, since?: number, upto?: number, docs?: boolean
  }): Promise<Document[]>
  /** Returns the record: what was executed, when, its logs and its response. */
  get (activationId: string): Promise<Document>
  /** Returns the lines that the activation wrote, each with its time and stream. */
  logs (activationId: string): Promise<string[]>
  /** Returns what the activation returned, its error included; rejects with NotFound until it has ended. */
  result<Result extends object = Document> (activationId: string): Promise<Result>
}

export interface Triggers {
  /** Fires a trigger; returns the id of its activation, or null if no rule follows it. */
  fire (name: string, params?: Params): Promise<string | null>
}

/** Whatever this package rejects with; its message is a sentence that says what to do next. */
export class ForerunError extends Error {}

/** It is not known where the API is, or with which key it is called. */
export class SettingsError extends ForerunError {}

/** The API was not reached, or its answer could not be read. Whether the request had an effect is not known. */
export class ConnectionFailed extends ForerunError {}

/** The API did not answer in time. */
export class TimedOut extends ConnectionFailed {}

/** The API refused the request. */
export class APIError extends ForerunError {
  /** Of HTTP. */
  readonly status: number
  /** The API's own sentence. */
  readonly reason: string
  /** The id under which the API's log has the request. */
  readonly transaction: string
}

/** The key is not valid (401), or not for this (403). */
export class Unauthorized extends APIError {}

/** There is no such action, trigger or activation (404). */
export class NotFound extends APIError {}

/** The namespace is over a limit (429): try again later. */
export class TooManyRequests extends APIError {}

/** The action ran, and ended with an error. */
export class ActionFailed extends ForerunError {
  /** What it returned as "error". */
  readonly error: unknown
  /** All that it returned. */
  readonly result: Document
  /** The key to its record and logs. */
  readonly activationId: string
}

/** The action still runs, for longer than the API waits. */
export class NotFinished extends ForerunError {
  /** Under which its result will be found. */
  readonly activationId: string
}
