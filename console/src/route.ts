// The place within the console: a path below /console/ and a query, which the URL has. So a place can be shared and gone back to.
import { computed, signal } from '@preact/signals'

const prefix = '/console/'
const place = signal(location.pathname + location.search)

addEventListener('popstate', () => { place.value = location.pathname + location.search })

export const path = computed(() => new URL(place.value, location.origin).pathname.slice(prefix.length))
export const query = computed(() => new URL(place.value, location.origin).searchParams)

/** The URL of a place: its segments are escaped. Empty values of a query are left out. */
export function link (segments: string[], values: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== '')).toString()
  return prefix + segments.map(encodeURIComponent).join('/') + (search === '' ? '' : '?' + search)
}

export function go (to: string, replace = false): void {
  if (replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  place.value = location.pathname + location.search
  if (!replace) scrollTo(0, 0)
}

// Links within the console load no page.
addEventListener('click', e => {
  const to = e.target instanceof Element ? e.target.closest('a') : null
  if (to === null || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return
  if (to.origin !== location.origin || !to.pathname.startsWith(prefix) || to.hasAttribute('download')) return
  e.preventDefault()
  go(to.pathname + to.search)
})
