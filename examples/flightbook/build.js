// Makes what forerun.yaml names in build/: the compositions as documents, and the Go functions as a program.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { flightbook, variants } from './composition.js'

const here = fileURLToPath(new URL('.', import.meta.url))

mkdirSync(`${here}build`, { recursive: true })
for (const variant of variants) {
  const { ast } = flightbook(variant).compile()
  writeFileSync(`${here}build/${variant}.json`, JSON.stringify(ast, null, 2) + '\n')
}
execFileSync('go', ['build', '-trimpath', '-ldflags=-s -w', '-o', '../build/native', '.'], {
  cwd: `${here}native`, stdio: 'inherit', env: { ...process.env, CGO_ENABLED: '0' }
})
