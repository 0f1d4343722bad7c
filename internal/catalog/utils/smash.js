// Nests all that it is given under one property. In: $fieldName, the property's name, and anything else.
function main({ $fieldName: name, ...rest }) {
  if (typeof name !== 'string') return { error: "Expected an argument '$fieldName' of type 'string'." }
  return { [name]: rest }
}
