// Sorts lines as texts. In: lines, an array. Out: lines, and length, their number.
function main(params) {
  const lines = params.lines || []
  console.log('sort input msg: ' + JSON.stringify(params))
  console.log('sort before: ' + lines)
  lines.sort()
  console.log('sort after: ' + lines)
  return { lines, length: lines.length }
}
