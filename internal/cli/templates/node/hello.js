/** Greets the person that the caller names. */
exports.main = args => ({ greeting: `Hello ${args.name}!` })
