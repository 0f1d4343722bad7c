// Turns the events of OpenWhisk's feeds into requests for the timer of a trigger. In: lifecycleEvent, triggerName, and the parameters
// of the feed. Out: the timer as it is (READ), or status; an error says what is wrong.
const methods = { CREATE: 'PUT', READ: 'GET', UPDATE: 'PATCH', DELETE: 'DELETE' }

async function main({ lifecycleEvent, triggerName, authKey, ...parameters }) {
  const method = methods[lifecycleEvent]
  if (!method) return { error: 'unsupported lifecycleEvent' }
  if (!triggerName) return { error: 'no trigger name parameter was provided' }
  const { __OW_API_HOST: host, __OW_API_KEY: key, __OW_ACTION_NAME: action } = process.env
  const trigger = encodeURIComponent(triggerName.split('/').pop())
  const headers = { authorization: 'Basic ' + Buffer.from(key).toString('base64'), 'content-type': 'application/json' }
  const body = method === 'PUT' || method === 'PATCH' ? JSON.stringify({ ...parameters, feed: action.split('/').pop() }) : undefined
  const answer = await fetch(`${host}/api/v1/namespaces/_/triggers/${trigger}/timer`, { method, headers, body })
  const document = await answer.json()
  if (!answer.ok) return { error: document.error }
  return method === 'GET' ? document : { status: 'success' }
}
