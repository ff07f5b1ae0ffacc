-- Consumers that pop a batch and ack it, in turn, until the queue is empty. One thread is one consumer.
-- Arguments: queue, batch, group.

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

acked, pops, refused, failed, started, ended = 0, 0, 0, 0, 0, 0

local headers = { ["Content-Type"] = "application/json" }
local pop, group = nil, nil
local ack, waiting_for = nil, 0
local empty = 0

function init(args)
  group = args[3]
  pop = wrk.format("GET",
    "/api/v1/pop/queue/" .. args[1] .. "?wait=false&batch=" .. args[2] .. "&consumerGroup=" .. group)
end

function request()
  if started == 0 then started = clock() end
  return ack or pop
end

local function acks_of(body)
  local lease = body:match('"leaseId":"([^"]*)"')
  local partition = body:match('"partitionId":"([^"]*)"')
  local head = '{"status":"completed","leaseId":"' .. lease .. '","partitionId":"' .. partition .. '","transactionId":"'
  local acks = {}
  for transaction in body:gmatch('"transactionId":"([^"]*)"') do
    acks[#acks + 1] = head .. transaction .. '"}'
  end
  return acks
end

function response(status, _, body)
  if ack then
    ack = nil
    local _, done = body:gsub('"success":true', "")
    if status ~= 200 then failed = failed + 1 end
    acked = acked + done
    refused = refused + waiting_for - done
    ended = clock()
  elseif status == 200 then
    pops, empty = pops + 1, 0
    local acks = acks_of(body)
    waiting_for = #acks
    ack = wrk.format("POST", "/api/v1/ack/batch", headers,
      '{"consumerGroup":"' .. group .. '","acknowledgments":[' .. table.concat(acks, ",") .. "]}")
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
  local sum = { acked = 0, pops = 0, refused = 0, failed = 0 }
  local first, last = math.huge, 0
  for _, thread in ipairs(threads) do
    for name, value in pairs(sum) do
      sum[name] = value + tonumber(thread:get(name))
    end
    first = math.min(first, tonumber(thread:get("started")))
    last = math.max(last, tonumber(thread:get("ended")))
  end
  local errors = summary.errors
  io.write(string.format('\n@{"acked":%d,"pops":%d,"refused":%d,"failed":%d,"seconds":%.6f}\n',
    sum.acked, sum.pops, sum.refused, sum.failed + errors.connect + errors.read + errors.write + errors.timeout,
    last - first))
end
