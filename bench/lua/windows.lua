-- Consumers that poll windows and ack them, in turn, until there are no more. One thread is one consumer.
-- Arguments: stream, group, how many windows a poll may take.

local ffi = require("ffi")
ffi.cdef [[ struct moment { long seconds; long nanoseconds; }; int clock_gettime(int clock, struct moment *now); ]]
local moment = ffi.new("struct moment")

local function clock()
  ffi.C.clock_gettime(1, moment)
  return tonumber(moment.seconds) + tonumber(moment.nanoseconds) / 1e9
end

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

acked, polls, messages, failed, started, ended = 0, 0, 0, 0, 0, 0

local headers = { ["Content-Type"] = "application/json" }
local poll, ack, group = nil, nil, nil
local empty = 0

function init(args)
  poll = wrk.format("POST", "/api/v1/stream/poll", headers,
    '{"streamName":"' .. args[1] .. '","consumerGroup":"' .. args[2] .. '","timeout":0,"maxWindows":' .. args[3] .. '}')
  group = args[2]
end

-- All windows of a response are acked with one request.
local function acks_of(body)
  local acks = {}
  local window = '"leaseId":"([^"]*)".-"partitionId":"([^"]*)","transactionId":"([^"]*)"'
  for lease, partition, transaction in body:gmatch(window) do
    acks[#acks + 1] = '{"leaseId":"' .. lease .. '","partitionId":"' .. partition .. '","transactionId":"'
      .. transaction .. '"}'
  end
  return wrk.format("POST", "/api/v1/ack/batch", headers,
    '{"consumerGroup":"' .. group .. '","acknowledgments":[' .. table.concat(acks, ",") .. ']}')
end

function request()
  if started == 0 then started = clock() end
  return ack or poll
end

function response(status, _, body)
  if ack then
    ack = nil
    local _, taken = body:gsub('"success":true', "")
    local _, refused = body:gsub('"success":false', "")
    acked = acked + taken
    if status ~= 200 or refused > 0 then failed = failed + 1 end
    ended = clock()
  elseif status == 200 then
    polls, empty = polls + 1, 0
    local _, found = body:gsub('"payload":', "")
    messages = messages + found
    ack = acks_of(body)
  elseif status == 204 then
    empty = empty + 1
    if empty > 50 then wrk.thread:stop() end
  else
    failed = failed + 1
  end
end

function delay()
  return empty > 0 and 5 or 0
end

function done(summary)
  local sum = { acked = 0, polls = 0, messages = 0, failed = 0 }
  local first, last = math.huge, 0
  for _, thread in ipairs(threads) do
    for name, value in pairs(sum) do
      sum[name] = value + tonumber(thread:get(name))
    end
    first = math.min(first, tonumber(thread:get("started")))
    last = math.max(last, tonumber(thread:get("ended")))
  end
  local errors = summary.errors
  io.write(string.format('\n@{"acked":%d,"polls":%d,"messages":%d,"failed":%d,"seconds":%.6f}\n',
    sum.acked, sum.polls, sum.messages, sum.failed + errors.connect + errors.read + errors.write + errors.timeout,
    last - first))
end
