-- Shared by all loads: a shuffled cycle of prepared requests, and a summary as one line of JSON.
local M = {}

function M.lines(file)
  local found = {}
  for line in io.lines(file) do found[#found + 1] = line end
  math.randomseed(42)
  for i = #found, 2, -1 do
    local j = math.random(i)
    found[i], found[j] = found[j], found[i]
  end
  return found
end

function M.round(prepared)
  local n, i = #prepared, 0
  return function()
    i = i % n + 1
    return prepared[i]
  end
end

function M.done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"seconds":%.6f,"p50Ms":%.3f,"p99Ms":%.3f,"bytes":%.0f,"badStatus":%d,"socketErrors":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    summary.bytes, e.status, e.connect + e.read + e.write + e.timeout))
end

return M
