import { setTimeout as pause } from 'node:timers/promises'

/**
 * Invokes an action and waits for its record. A server answers a request after 60 s at most (202); then the record is asked for until it is there.
 * @param {object} ow the npm client openwhisk
 * @param {string} name of the action
 * @param {object} params its input
 * @returns {Promise<object>} the activation record
 */
export async function invoke (ow, name, params) {
  const answer = await ow.actions.invoke({ name, params, blocking: true })
  if (answer.response) return answer
  for (;;) {
    const record = await ow.activations.get({ name: answer.activationId }).catch(error => {
      if (error.statusCode !== 404) throw error // 404: it still runs
    })
    if (record?.response.success) return record
    if (record) throw new Error(`${name} failed: ${JSON.stringify(record.response.result)} (activation ${answer.activationId})`)
    await pause(200)
  }
}
