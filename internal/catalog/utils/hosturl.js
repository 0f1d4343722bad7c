// Tells where to call an action or a trigger of the caller's namespace. In: path, "action" or "package/action"; web, true for a
// web action, with ext, its extension; trigger, true for a trigger. Out: url.
function main({ path, web, ext, trigger }) {
  const extensions = ['.html', '.http', '.json', '.svg', '.text']
  const isWeb = web === true
  if (isWeb && trigger) return { error: 'triggers are not allowed for web actions.' }
  if (isWeb && ext && !extensions.includes(ext)) {
    return { error: 'extension for web action must be one of [".html", ".http", ".json", ".svg", ".text"].' }
  }
  if (!isWeb && trigger && path && path.includes('/')) return { error: 'triggers are not allowed in packages.' }
  const { __OW_API_HOST: host, __OW_NAMESPACE: namespace } = process.env
  const collection = trigger === true ? 'triggers' : 'actions'
  const base = isWeb ? `${host}/api/v1/web/${namespace}` : `${host}/api/v1/namespaces/${namespace}/${collection}`
  if (!path) return { url: base }
  if (!isWeb) return { url: `${base}/${path}` }
  return { url: `${base}/${path.includes('/') ? path : 'default/' + path}${ext || ''}` }
}
