import { length, moment } from './format.js'
import { link } from './route.js'
import { actionOf, annotation, type Run, statuses } from './types.js'

/** How an activation began: with a new sandbox, or not at all since its result was known. */
export function startOf (run: Run): string {
  return annotation(run, 'cached') !== undefined ? 'cached' : annotation(run, 'initTime') !== undefined ? 'cold' : ''
}

export function statusOf (run: Run): string {
  return run.statusCode === undefined ? '' : statuses[run.statusCode] ?? String(run.statusCode)
}

/** A table of activations. */
export function RunTable ({ runs }: { runs: readonly Run[] }) {
  return (
    <table class="runs">
      <thead><tr><th scope="col">Began</th><th scope="col">Action</th><th scope="col">Took</th><th scope="col">Status</th><th scope="col">Start</th></tr></thead>
      <tbody>
        {runs.map(run => (
          <tr key={run.activationId}>
            <td>{moment(run.start)}</td>
            <td><a href={link(['runs', run.activationId])}>{actionOf(run)}</a></td>
            <td>{run.duration === undefined ? '' : length(run.duration)}</td>
            <td class={run.statusCode === 0 ? '' : 'fault'}>{statusOf(run)}</td>
            <td>{startOf(run)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
