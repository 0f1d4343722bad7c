import { useSignal } from '@preact/signals'

/** Text with a button that copies it. */
export function Copied ({ text }: { text: string }) {
  const done = useSignal(false)
  return (
    <div class="copied">
      <pre tabIndex={0}>{text}</pre>
      <button type="button" onClick={() => { void navigator.clipboard.writeText(text).then(() => { done.value = true }) }}>{done.value ? 'Copied' : 'Copy'}</button>
    </div>
  )
}
