// Runs a function of a composition, given its text. The composition's variables are local to it, and go back with what
// it returned.
function main ({ code, params, variables }) {
  const names = Object.keys(variables).join(',')
  const body = `var {${names}} = variables
    try { return eval((${JSON.stringify(code)}))(params) } finally { Object.assign(variables, {${names}}) }`
  const result = new Function('params', 'variables', 'require', body)(params, variables, require)
  return Promise.resolve(result).then(value => {
    if (typeof value === 'function') return { variables }
    return { params: value === undefined ? params : value, variables }
  })
}
