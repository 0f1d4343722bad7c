// Splits a text into lines. In: payload, the text, and separator, a text (the end of a line). Out: lines and payload.
function main({ payload, separator }) {
  const result = { lines: payload.toString().split(separator || /\r?\n/), payload }
  console.log('split: returning ' + JSON.stringify(result))
  return result
}
