// The worker of workerd that calls ten others through service bindings, by RPC as their documents recommend.

const stages = 10

export default {
  async fetch (request, env) {
    let value = await request.json()
    for (let i = 0; i < stages; i++) value = await env[`stage${i}`].work(value)
    return Response.json(value)
  }
}
