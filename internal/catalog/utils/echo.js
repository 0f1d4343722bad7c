// Gives back what it is given.
function main(params) {
  return params || {}
}
