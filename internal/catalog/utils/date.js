// Tells the time. Out: date, in ISO 8601.
function main() {
  const date = new Date()
  console.log('It is now ' + date)
  return { date }
}
