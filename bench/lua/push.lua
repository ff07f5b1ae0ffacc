-- Pushes batches of messages with transaction ids, each request to one partition, in turn.
-- Arguments: queue, batch, partitions, a word that makes the transaction ids of this run unique, and perhaps a
-- credential.

local thread_number = 0

function setup(thread)
  thread:set("number", thread_number)
  thread_number = thread_number + 1
end

local headers = { ["Content-Type"] = "application/json" }
local payloads = {}
local heads = {}
local parts = {}
local batch, partitions, sent = 0, 0, 0
local tail = ""

function init(args)
  local queue = args[1]
  batch, partitions = tonumber(args[2]), tonumber(args[3])
  tail = args[4] .. "-" .. number .. "-"
  for p = 0, partitions - 1 do
    heads[p] = '{"queue":"' .. queue .. '","partition":"p' .. p .. '","transactionId":"' .. tail
  end
  for i = 1, batch do
    payloads[i] = string.format(
      '","payload":{"id":%d,"user":"user-%06d","event":"page_view","amount":%d.25,"ok":true,"note":"%s"}}',
      i, i * 7919 % 1000000, i % 997, "abcdefghijklmnopqrstuvwxyz0123456789")
  end
  sent = number * 1000000007
  if args[5] and args[5] ~= "" then headers["Authorization"] = "Bearer " .. args[5] end
end

local request_number = 0

function request()
  request_number = request_number + 1
  local head = heads[(number * 37 + request_number) % partitions]
  local n = 0
  for i = 1, batch do
    sent = sent + 1
    parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] = i > 1 and "," or "", head, sent, payloads[i]
    n = n + 4
  end
  return wrk.format("POST", "/api/v1/push", headers, '{"items":[' .. table.concat(parts, "", 1, n) .. "]}")
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\n@{"requests":%d,"seconds":%.6f,"failed":%d,"p50_ms":%.3f,"p99_ms":%.3f}\n',
    summary.requests, summary.duration / 1e6,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
