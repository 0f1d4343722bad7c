/** Milliseconds for people. */
export function length (ms: number): string {
  if (ms < 1000) return `${ms} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.round(ms % 60_000 / 1000)} s`
}

/** Microseconds for people. */
export function micros (us: number): string {
  return us < 1000 ? `${us} µs` : us < 1_000_000 ? `${(us / 1000).toFixed(us < 10_000 ? 2 : 1)} ms` : length(Math.round(us / 1000))
}

/** A moment, in the time zone of the browser. */
export function moment (ms: number): string {
  const two = (n: number): string => String(n).padStart(2, '0')
  const at = new Date(ms)
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/**
 * Text of functions is hostile: it is shown as text, and what would be invisible or change the order of the text around it is shown by
 * its number.
 */
export function visible (text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
