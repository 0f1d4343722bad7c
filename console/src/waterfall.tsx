import { useSignal } from '@preact/signals'

import { micros, visible } from './format.js'
import { link } from './route.js'
import type { Slot, Trace } from './types.js'

const wide = 1000 // of a bar, in units of its picture
const mostLevels = 8

/** How each look is drawn: its height, and what the legend says. */
const looks: Record<string, { high: number, legend: string }> = {
  workflow: { high: 4, legend: 'workflow' },
  waits: { high: 4, legend: 'waits' },
  ended: { high: 4, legend: 'has ended, and its turn has not come' },
  runs: { high: 12, legend: 'runs in order' },
  speculative: { high: 12, legend: 'runs speculatively' },
  squashed: { high: 12, legend: 'was squashed' },
  skipped: { high: 12, legend: 'not executed: its output was known' }
}

function Bars ({ slot, trace }: { slot: Slot, trace: Trace }) {
  const x = (at: number): number => Math.min(1, Math.max(0, at - trace.begin) / Math.max(1, trace.wall)) * wide
  return (
    <svg viewBox={`0 0 ${wide} 16`} preserveAspectRatio="none" role="img" aria-label={`${slot.title}, ${slot.note ?? 'in order'}`}>
      {(slot.bars ?? []).map((bar, i) => {
        const { high } = looks[bar.look] ?? { high: 4 }
        return <rect key={i} class={bar.look} x={x(bar.from)} y={8 - high / 2} width={Math.max(4, x(bar.to) - x(bar.from))} height={high} />
      })}
    </svg>
  )
}

/** Arrow keys walk from row to row. */
function walk (e: KeyboardEvent): void {
  const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0
  if (step === 0 || !(e.currentTarget instanceof Element)) return
  const rows = [...e.currentTarget.querySelectorAll<HTMLElement>('.row > .name')]
  const next = rows[rows.indexOf(document.activeElement as HTMLElement) + step]
  if (next === undefined) return
  e.preventDefault()
  next.focus()
}

function took (slot: Slot): number {
  return Math.max(0, ...(slot.bars ?? []).filter(b => b.look !== 'waits' && b.look !== 'ended').map(b => b.to - b.from))
}

/** The waterfall of a trace. */
export function Waterfall ({ trace, shown }: { trace: Trace, shown: string }) {
  const critical = useSignal(false)
  const used = new Set(trace.slots.flatMap(s => (s.bars ?? []).map(b => b.look)))
  return (
    <section aria-labelledby="waterfall">
      <h2 id="waterfall">Waterfall</h2>
      <p>{trace.times} {trace.counts}</p>
      <p class="legend">
        {Object.entries(looks).filter(([look]) => used.has(look)).map(([look, { legend }]) => <span key={look}><i class={look} />{legend}</span>)}
      </p>
      <label class="check"><input type="checkbox" checked={critical} onChange={e => { critical.value = e.currentTarget.checked }} /> why slow: light up what made the time</label>
      <ol class={critical.value ? 'waterfall lit' : 'waterfall'} onKeyDown={walk}>
        {trace.slots.map(slot => (
          <li key={slot.row} class={(slot.critical ?? 0) > 0 ? 'row critical' : 'row'} title={visible(slot.note ?? '')}>
            <Name slot={slot} shown={shown} />
            <Bars slot={slot} trace={trace} />
            <span class="took">{micros(critical.value ? slot.critical ?? 0 : took(slot))}</span>
            <span class="note">{visible(slot.note ?? '')}</span>
          </li>
        ))}
      </ol>
    </section>
  )
}

function Name ({ slot, shown }: { slot: Slot, shown: string }) {
  const text = `#${slot.row} ${visible(slot.title)}`
  const level = `name level${Math.min(mostLevels, slot.depth)}`
  if (slot.activationId === undefined) return <span class={level} tabIndex={0}>{text}</span>
  return <a class={level} href={link(['runs', slot.activationId])} aria-current={slot.activationId === shown ? 'true' : undefined}>{text}</a>
}
