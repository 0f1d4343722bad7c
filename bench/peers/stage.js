// The function that workerd's chain calls ten times: it returns its input, after as many milliseconds as it says.

import { WorkerEntrypoint } from 'cloudflare:workers'

export default class extends WorkerEntrypoint {
  async work (input) {
    if (input.wait) await new Promise(resolve => setTimeout(resolve, input.wait))
    return input
  }
}
