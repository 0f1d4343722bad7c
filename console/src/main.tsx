import { render } from 'preact'
import { computed } from '@preact/signals'

import { Actions } from './actions.js'
import { connected } from './feed.js'
import { Login } from './login.js'
import { link, path } from './route.js'
import { RunPage } from './run.js'
import { Runs } from './runs.js'
import { logout, session } from './session.js'
import { Start } from './start.js'
import { Try } from './try.js'

const place = computed(() => {
  try {
    return path.value.split('/').map(decodeURIComponent)
  } catch {
    return ['?'] // the path is malformed
  }
})

function Screen () {
  const [screen = '', ...rest] = place.value
  if (rest.some(s => s.includes('/') || s === '.' || s === '..')) return <NotFound /> // it would lead to another path of the API
  switch (screen) {
    case '': return <Start />
    case 'runs': return rest[0] === undefined || rest[0] === '' ? <Runs /> : <RunPage key={rest[0]} id={rest[0]} />
    case 'actions': return <Actions />
    case 'try': return <Try key={rest.join('/')} name={rest.join('/')} />
  }
  return <NotFound />
}

function NotFound () {
  return <main><h1>Not found</h1><p>The console has no such page. <a href={link([])}>Start</a></p></main>
}

const tabs: Array<[string, string]> = [['', 'Start'], ['runs', 'Runs'], ['actions', 'Actions']]

function App () {
  const of = session.value
  if (of === null) return <Login />
  const screen = place.value[0] === 'try' ? 'actions' : place.value[0]
  return (
    <>
      <header>
        <strong>Forerun</strong>
        <nav aria-label="Screens">
          {tabs.map(([name, title]) => <a key={name} href={link(name === '' ? [] : [name])} aria-current={screen === name ? 'page' : undefined}>{title}</a>)}
        </nav>
        <span class="who">{of.namespace} <span class={connected.value ? 'live on' : 'live'}>{connected.value ? 'live' : 'not connected'}</span></span>
        <button type="button" onClick={() => { void logout() }}>Log out</button>
      </header>
      <Screen />
    </>
  )
}

render(<App />, document.body)
