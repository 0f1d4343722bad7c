// Runs one function of a composition: SOURCE is replaced by its text, as a string. The composition's variables are local
// to it, and go back with what it returned.
function main ({ params, variables }) {
  const names = Object.keys(variables).join(',')
  const body = `var {${names}} = variables
    try { return eval((${SOURCE}))(params) } finally { Object.assign(variables, {${names}}) }`
  const result = new Function('params', 'variables', 'require', body)(params, variables, require)
  return Promise.resolve(result).then(value => {
    if (typeof value === 'function') return { variables }
    return { params: value === undefined ? params : value, variables }
  })
}
