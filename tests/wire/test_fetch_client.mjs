// The shapes that Queen's JavaScript client reads, checked with plain fetch.
// Run by test_node.py: node --test test_fetch_client.mjs, with QUEENSPARK_URL set.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'

const url = process.env.QUEENSPARK_URL

async function call(method, path, body) {
  const response = await fetch(url + path, {
    method,
    headers: { 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : null }
}

const push = (queue, ...payloads) =>
  call('POST', '/api/v1/push', { items: payloads.map((payload) => ({ queue, partition: 'p', payload })) })

async function pop(queue, batch = 1) {
  const response = await call('GET', `/api/v1/pop/queue/${queue}?batch=${batch}&wait=true&timeout=10000`)
  assert.equal(response.status, 200)
  return response.body.messages
}

const ackOf = ({ transactionId, partitionId, leaseId }, status = 'completed') =>
  ({ transactionId, partitionId, leaseId, status })

test('push returns 201 with an array in item order', async () => {
  const queue = randomUUID()
  const response = await push(queue, { n: 1 }, { n: 2 })
  assert.equal(response.status, 201)
  assert.ok(Array.isArray(response.body))
  assert.deepEqual(response.body.map((result) => result.index), [0, 1])
  assert.deepEqual(response.body.map((result) => result.status), ['queued', 'queued'])
  for (const result of response.body) {
    assert.equal(typeof result.transaction_id, 'string')
    assert.equal(result.queueName, queue)
  }
})

test('pop returns an object with messages', async () => {
  const queue = randomUUID()
  await push(queue, { n: 1 })
  const response = await call('GET', `/api/v1/pop/queue/${queue}?batch=10&wait=true&timeout=10000`)
  assert.equal(response.status, 200)
  assert.equal(response.body.success, true)
  const [message] = response.body.messages
  assert.deepEqual(message.data, { n: 1 })
  for (const field of ['id', 'transactionId', 'partitionId', 'leaseId', 'queue', 'partition', 'createdAt']) {
    assert.equal(typeof message[field], 'string', field)
  }
  assert.ok(!Number.isNaN(Date.parse(message.createdAt)))
})

test('an empty queue returns 204 without a body', async () => {
  const response = await call('GET', `/api/v1/pop/queue/${randomUUID()}?wait=false`)
  assert.equal(response.status, 204)
  assert.equal(response.body, null)
})

test('ack returns an object', async () => {
  const queue = randomUUID()
  await push(queue, 1)
  const [message] = await pop(queue)
  const response = await call('POST', '/api/v1/ack', ackOf(message))
  assert.equal(response.status, 200)
  assert.ok(!Array.isArray(response.body))
  assert.equal(response.body.success, true)
  assert.equal(response.body.transactionId, message.transactionId)
})

test('a batch of acks returns an array', async () => {
  const queue = randomUUID()
  await push(queue, 1, 2)
  const messages = await pop(queue, 2)
  const response = await call('POST', '/api/v1/ack/batch', { acknowledgments: messages.map((m) => ackOf(m)) })
  assert.equal(response.status, 200)
  assert.ok(Array.isArray(response.body))
  assert.deepEqual(response.body.map((result) => result.success), [true, true])
})

test('a transaction returns success and its results', async () => {
  const queue = randomUUID()
  await push(queue, 1)
  const [message] = await pop(queue)
  const operations = [
    { type: 'ack', ...ackOf(message) },
    { type: 'push', items: [{ queue: `${queue}-out`, payload: 2 }] },
  ]
  const response = await call('POST', '/api/v1/transaction', { operations, requiredLeases: [message.leaseId] })
  assert.equal(response.status, 200)
  assert.equal(response.body.success, true)
  assert.ok(Array.isArray(response.body.results))
  assert.deepEqual((await pop(`${queue}-out`)).map((m) => m.data), [2])
})

test('a rejected transaction returns 200 with success false and an error', async () => {
  const operations = [{ type: 'push', items: [{ queue: randomUUID(), payload: 1 }] }]
  const response = await call('POST', '/api/v1/transaction', { operations, requiredLeases: [randomUUID()] })
  assert.equal(response.status, 200)
  assert.equal(response.body.success, false)
  assert.equal(typeof response.body.error, 'string')
})

test('a lease is extended', async () => {
  const queue = randomUUID()
  await push(queue, 1)
  const [message] = await pop(queue)
  const response = await call('POST', `/api/v1/lease/${message.leaseId}/extend`, {})
  assert.equal(response.status, 200)
  assert.ok(!Number.isNaN(Date.parse(response.body.newExpiresAt)))
})

test('an error is an object with a message', async () => {
  const response = await call('POST', '/api/v1/push', { nothing: true })
  assert.equal(response.status, 400)
  assert.equal(response.body.error, 'items array is required')
})

test('a response has no CORS headers', async () => {
  const response = await call('GET', '/health')
  assert.equal(response.headers.get('access-control-allow-origin'), null)
})
