// Runs a function of a composition, given its text, as composer's conductor does: the composition's variables are variables around
// it, and what they are when it returns goes back with its result.
const copy = value => JSON.parse(JSON.stringify(value))

function evaluate (code, params, variables) {
  const names = Object.keys(variables)
  const enter = names.map(name => `var ${name}=arguments[1]['${name}'];`).join('')
  const leave = names.map(name => `arguments[1]['${name}']=${name};`).join('')
  const call = `return eval((function(){return(${code})})())(arguments[0])`
  return (0, eval)(`(function(){try{const require=arguments[2];${enter}${call}}finally{${leave}}})`)(params, variables, require)
}

async function main ({ code, params, variables }) {
  const after = {}
  let result
  try {
    try {
      result = evaluate(code, params, variables)
    } finally {
      for (const name in variables) after[name] = copy(variables[name])
    }
    result = await result
  } catch (error) {
    console.error(error)
    return { outcome: 'threw', variables: after }
  }
  if (typeof result === 'function') return { outcome: 'function', variables: after }
  try {
    return { params: copy(result === undefined ? params : result), variables: after }
  } catch (error) {
    return { outcome: 'broke', message: error.message, variables: after }
  }
}
