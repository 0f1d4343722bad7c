// What sends a datagram in ahead_guard_test.go, and waits for no answer.
const dgram = require('dgram')

exports.main = async ({ host, udp, n }) => {
  process.title = 'link3' // the name of the process, too
  const socket = dgram.createSocket('udp4')
  await new Promise((resolve, reject) => {
    socket.send(`link3 ${process.env.__OW_TRANSACTION_ID} ${n}`, udp, host, error => error ? reject(error) : resolve())
  })
  socket.close()
  console.log(process.env.__OW_ACTIVATION_ID, 'of 3')
  return { n }
}
