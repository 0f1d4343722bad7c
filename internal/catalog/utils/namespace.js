// Tells the namespace of whoever invokes it. Out: namespace.
function main() {
  return { namespace: process.env.__OW_NAMESPACE }
}
