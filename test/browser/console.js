// Drives the console in a browser, as a person would: console.js CONSOLE API KEY, where CONSOLE and API are URLs. TestConsoleInBrowser has
// deployed what it uses. It starts one browser. With the status 77 and a reason it ends where no browser starts.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'

const skipped = 77
const patience = 240_000 // ms for anything: the machine may be busy

/**
 * Ends without a verdict.
 * @param {string} reason why
 */
function skip (reason) {
  console.log(reason)
  process.exit(skipped)
}

const program = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome'].find(existsSync)
if (program === undefined) skip('there is no Chromium here: apt-get install chromium-headless-shell')
if (parseInt(process.versions.node) < 20) skip(`playwright-core needs Node 20 or newer: this is ${process.version}`)

const { chromium } = await import(process.env.FORERUN_PLAYWRIGHT)
const [address, api, key] = process.argv.slice(2)
const browser = await chromium.launch({
  executablePath: program, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--no-proxy-server'], timeout: patience
}).catch(error => skip(`the browser does not start here: ${error.message.split('\n')[0]}`))

const faults = []
const hosts = new Set()

/**
 * Opens a tab whose faults are noted.
 * @param {object} context of the browser
 * @param {string} url what it shows
 * @returns {Promise<object>} the tab
 */
async function open (context, url) {
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  page.on('console', message => {
    if (message.type() === 'error' && !/status of (401|404)/.test(message.text())) faults.push(message.text())
  })
  page.on('pageerror', error => faults.push(String(error)))
  page.on('request', request => hosts.add(new URL(request.url()).origin))
  await page.goto(url)
  return page
}

/**
 * Fails if a page is wider than its window.
 * @param {object} page the tab
 */
async function fits (page) {
  const { wide, has } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, has: document.documentElement.clientWidth }))
  assert.ok(wide <= has, `${page.url()} is ${wide} wide in a window of ${has}`)
}

try {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 } })
  const page = await open(context, address)
  const text = async selector => (await page.locator(selector).allInnerTexts()).join('\n')

  // A login with a wrong key, and with the right one, by keyboard.
  await page.getByLabel('Key of a tenant').fill('x:y')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').filter({ hasText: 'invalid' }).waitFor()
  await page.getByLabel('Key of a tenant').fill(key)
  await page.keyboard.press('Enter')
  await page.getByText('guest', { exact: false }).first().waitFor()
  await page.getByText('The first call').waitFor()
  await page.getByText('live', { exact: true }).waitFor()
  assert.equal(await page.evaluate(() => document.cookie), '', 'a script reads the cookie')
  await fits(page)

  // Actions, and a try: what is not JSON is refused.
  await page.getByRole('link', { name: 'Actions' }).click()
  await page.getByRole('link', { name: 'hostile' }).waitFor()
  await fits(page)
  await page.getByRole('link', { name: 'hello', exact: true }).click()
  await page.getByLabel('Input, a JSON object').fill('{"n":')
  await page.getByRole('button', { name: 'Invoke' }).click()
  await page.getByRole('alert').filter({ hasText: 'not JSON' }).waitFor()
  await page.getByLabel('Input, a JSON object').fill('{"n": 41}')
  await page.keyboard.press('Control+Enter')
  await page.getByText('HTTP 200').waitFor()
  assert.match(await text('section[aria-live] pre'), /"n": 41/)
  assert.match(await text('.copied'), /curl -u "\$AUTH"[^]*forerun invoke 'hello'/)
  await fits(page)
  await page.getByRole('link', { name: 'Show the run' }).click()
  await page.getByRole('heading', { name: 'Waterfall' }).waitFor()
  assert.match(await text('.facts'), /success/)
  await fits(page)

  // What functions write and return is text, whatever it is.
  await page.goto(address + 'try/hostile')
  await page.getByRole('button', { name: 'Invoke' }).click()
  await page.getByRole('link', { name: 'Show the run' }).click()
  await page.getByRole('heading', { name: 'Log' }).waitFor()
  const log = await text('pre.log')
  assert.match(log, /<img src=x onerror=/)
  assert.match(log, /\\u202eevil/)
  assert.match(log, /\\u001b\[31m/)
  assert.match(await text('section[aria-labelledby=result] pre'), /<script>/)
  assert.equal(await page.locator('img, script:not([src]), iframe').count(), 0, 'markup of a function is in the page')

  // A workflow: its rows, the keys that walk them, and what made the time.
  await page.goto(address + 'try/chain')
  await page.getByRole('button', { name: 'Invoke' }).click()
  await page.getByRole('link', { name: 'Show the run' }).click()
  await page.locator('.row').nth(2).waitFor()
  await page.locator('.row .name').first().focus()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  assert.equal(await page.evaluate(() => document.activeElement.textContent), '#3 hello')
  await page.getByLabel('why slow').check()
  assert.ok(await page.locator('.lit .critical').count() > 0)
  await fits(page)
  await page.locator('.row .name').nth(1).click()
  await page.getByText('Part of').waitFor()
  await page.goBack()
  await page.locator('.row').nth(2).waitFor()

  // Runs: filters are in the URL, and a second tab is told by the feed.
  const second = await open(context, address + 'runs?action=hello')
  await second.getByRole('link', { name: 'hello' }).first().waitFor()
  assert.equal(await second.getByRole('row').filter({ hasText: 'chain' }).count(), 0)
  await second.getByText('live', { exact: true }).waitFor()
  const before = await second.getByRole('row').count()
  await page.goto(address + 'try/hello')
  await page.getByRole('button', { name: 'Invoke' }).click()
  await page.getByText('HTTP 200').waitFor()
  await second.waitForFunction(n => document.querySelectorAll('tbody tr').length >= n, before)
  await second.getByLabel('Status').selectOption('application error')
  await second.getByText('No run fits.').waitFor()
  assert.equal(new URL(second.url()).search, '?action=hello&status=application+error')
  await fits(second)

  // A tab that is not seen leaves its connection to others, which browsers bound, and goes on when it is seen.
  for (const [hides, says] of [[true, 'not connected'], [false, 'live']]) {
    await second.evaluate(value => {
      Object.defineProperty(document, 'hidden', { value, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }, hides)
    await second.getByText(says, { exact: true }).waitFor()
  }

  // What a feed that begins again does not tell of runs no more.
  const third = await context.newPage()
  third.setDefaultTimeout(patience)
  let told = 'id: 1\nevent: begun\ndata: {"activationId":"x","name":"gone","start":1,"annotations":[]}\n\n'
  await third.route('**/feed', route => route.fulfill({ contentType: 'text/event-stream', body: told }))
  await third.goto(address)
  await third.getByRole('link', { name: 'gone' }).waitFor()
  told = ':\n\n'
  await third.getByText('Nothing runs.').waitFor()
  await third.close()

  // Dark and light.
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  await page.emulateMedia({ colorScheme: 'light' })
  const light = await paper()
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.notEqual(await paper(), light)
  assert.deepEqual(faults, [], 'the browser reports faults')
  assert.deepEqual([...hosts], [new URL(address).origin], 'the console asks other hosts')

  // A tenant's page on another port of the same host sees no cookie, and can do nothing with it.
  const hostile = await open(context, api + '/api/v1/web/guest/default/page.html')
  assert.match(await hostile.content(), /headers/)
  assert.doesNotMatch(await hostile.content(), /forerun-console/)
  const tried = await hostile.evaluate(async ({ to, token }) => {
    const reached = []
    const headers = { 'X-Forerun-Console': token }
    for (const [path, init] of [['namespaces/_/actions', {}], ['namespaces/_/actions', { headers }], ['namespaces/_/actions/hello', { method: 'POST', headers }]]) {
      const answer = await fetch(to + 'api/v1/' + path, { ...init, credentials: 'include' }).catch(() => null)
      if (answer !== null) reached.push(path)
    }
    const sent = await fetch(to + 'api/v1/namespaces/_/actions/hello', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }).catch(() => null)
    if (sent !== null) reached.push('without CORS')
    return { reached, stored: localStorage.getItem('forerun-session') }
  }, { to: new URL('/', address).href, token: await page.evaluate(() => JSON.parse(localStorage.getItem('forerun-session')).token) })
  assert.deepEqual(tried, { reached: [], stored: null })

  // A logout ends the session of all tabs.
  await page.getByRole('button', { name: 'Log out' }).click()
  await second.getByLabel('Key of a tenant').waitFor()
  assert.equal(await second.evaluate(() => localStorage.length), 0, 'something is left in the browser')
  console.log('done')
} catch (error) {
  console.error(error, faults)
  process.exitCode = 1
} finally {
  await browser.close()
}
