// Gives the first of some lines. In: lines, an array, and num, how many (1). Out: lines and num.
function main({ lines, num }) {
  lines = lines || []
  num = num || 1
  const first = lines.slice(0, num)
  console.log(`head get first ${num} lines of ${lines}: ${first}`)
  return { lines: first, num }
}
