// Joins lines to one text. In: lines, an array. Out: lines, and payload, the text.
function main({ lines = [] }) {
  const result = { lines, payload: lines.join('\n') }
  console.log('cat: returning ' + JSON.stringify(result))
  return result
}
