import { createHash } from 'node:crypto';
import { LEASE_MS } from '../../ports/shared.ts';
import { FOREIGN_LUA } from './script-foreign.ts';

/**
 * Milliseconds for which the server keeps what nobody has written or swept: long after the last process of an
 * installation has ended. Expiry of the server is by its own clock and only frees memory; what is shown is decided by
 * the times that are stored.
 */
const KEEP_MS = 24 * 60 * 60_000;
/** Milliseconds for which the server keeps what shows nothing any more. */
const SLACK_MS = 60_000;
/** About how many keys of the database one call of `sweep` looks at. */
const SWEEP_KEYS = 200;
/** The most that the clock of the server may have been set back, in µs. A stored time that is later is none of ours. */
const MOST_OFFSET = 365 * 24 * 60 * 60_000_000;

/**
 * Runs calls of `Shared` in their order. KEYS: the time, the leases, then one key per call that has one. ARGV: the time
 * in µs in place of that of the server, for tests, or ''; then each call, its name before its arguments. Returns an
 * array for each call: its answer, or '!' and the error of the server; and one with the names of the keys that had
 * values of another program, and were removed. Times are in µs, except those of budgets, which are those of
 * memory/budget.ts.
 *
 * The time is that of the server; it never goes back, even if the clock of the server does or another one becomes the
 * master, because the latest one is stored, together with by how much the clock was behind it. A lease has a number,
 * and what it owns names that number: so it begins and ends without touching what it owns. Of a lease that `endLease`
 * has ended, the leases keep until when its records are shown.
 *
 * - `tag:t`: the latest time, and what is to be added to the clock.
 * - `tag:l`: a hash; `o<owner>` -> the number and end of its lease, `e<number>` -> the end of its records, `n` -> the
 *   latest number.
 * - `tag:h:<key>`: a list, the times of the allowed hits.
 * - `tag:b:<key>`: when a budget is full again, in ms.
 * - `tag:c:<key>`: a hash; owner -> the number of its lease, and its count.
 * - `tag:r:<key>`: a hash; name -> the number of the lease of its owner (0 for nobody), when it was put, when it expires
 *   (0 for never), the owner and the text.
 */
export const SCRIPT = `
local call = redis.call
local LEASE, KEEP, SLACK = ${LEASE_MS * 1_000}, ${KEEP_MS}, ${SLACK_MS}
local function int(number) return string.format('%.0f', number) end
local function exact(number) return string.format('%.17g', number) end
${FOREIGN_LUA}
local clock = call('TIME')
local now = ARGV[1] ~= '' and tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2]
do
  local text = redis.pcall('GET', KEYS[1])
  if type(text) == 'table' and not string.find(text.err, 'WRONGTYPE', 1, true) then return text end
  local last, offset = string.match(type(text) == 'string' and text or '', '^(%d+) (%d+)$')
  last, offset = num(last), num(offset)
  if not last or not offset or offset > ${MOST_OFFSET} or last > now + ${MOST_OFFSET} then
    if text then forget(KEYS[1]) end
    last, offset = 0, 0
  end
  if now + offset < last then offset = last - now end
  now = now + offset
  local stored = redis.pcall('SET', KEYS[1], int(now) .. ' ' .. int(offset), 'PX', KEEP)
  if stored.err and string.sub(stored.err, 1, 3) ~= 'OOM' then return stored end
end

-- Keeps a key for ms, at least half of KEEP more or less.
local function keep(key, ms)
  if call('PTTL', key) < ms - KEEP / 2 then call('PEXPIRE', key, int(ms)) end
end

local function lease(owner)
  local value = call('HGET', KEYS[2], 'o' .. owner)
  if not value then return nil end
  local number, ends = string.match(value, '^(%d+) (%d+)$')
  ends = num(ends)
  if ends and ends > now and ends <= now + LEASE then return number end
end

local function setLease(owner, number)
  call('HSET', KEYS[2], 'o' .. owner, number .. ' ' .. int(now + LEASE))
  keep(KEYS[2], KEEP)
end

-- Until when a record is shown as far as its lease goes, and whether it is nobody's.
local function leaseEnd(number, owner)
  if number == '0' then return math.huge, true end
  if lease(owner) == number then return math.huge, false end
  local ends = num(call('HGET', KEYS[2], 'e' .. number)) or 0
  return ends > now + KEEP * 1000 and 0 or ends, true
end

local function shown(record, ends)
  local number, _, expires, owner = string.match(record, '^(%d+) (%d+) (%d+) (%S*) ')
  if not number then return nil end
  if not ends[number] then ends[number] = { leaseEnd(number, owner) } end
  local til = ends[number][1]
  if expires ~= '0' then til = math.min(til, num(expires) or 0) end
  if til <= now then return nil end
  return til == math.huge and '' or int(til - now), ends[number][2] and '1' or ''
end

local calls = {}

-- The first hit that counts. Those before it are removed.
local function firstHit(key, window)
  local text = call('LINDEX', key, 0)
  while text do
    local at = num(text)
    if not at or at > now + window then return forget(key) end
    if at > now - window then return at end
    call('LPOP', key)
    text = call('LINDEX', key, 0)
  end
end

function calls.hit(key, limit, window)
  limit, window = tonumber(limit), tonumber(window)
  local first = firstHit(key, window)
  local count = call('LLEN', key)
  if count < limit then
    call('RPUSH', key, int(now))
    call('PEXPIRE', key, int(window / 1000 + SLACK))
    return { '1', int(count + 1), int((first or now) + window - now) }
  end
  return { '', int(count), int(math.min(now, num(call('LINDEX', key, count - limit)) or now) + window - now) }
end

function calls.spend(key, amount, limit, window, overdraw)
  limit, window = tonumber(limit), tonumber(window)
  local ms = now / 1000
  local text = call('GET', key)
  local full = num(text)
  if text and (not full or full > ms + window + KEEP) then full = forget(key) end
  local missing = math.max(0, (full or ms) - ms)
  local after = missing + (tonumber(amount) * window) / limit
  local spent = (missing == 0 or after <= window or overdraw == '1') and after or missing
  call('SET', key, exact(ms + spent), 'PX', int(spent + SLACK))
  return { exact(missing) }
end

function calls.begin(owner)
  local number = math.max(now, (num(call('HGET', KEYS[2], 'n')) or 0) + 1)
  call('HSET', KEYS[2], 'n', int(number))
  setLease(owner, int(number))
  return {}
end

function calls.renew(owner)
  local number = lease(owner)
  if number then setLease(owner, number) end
  return { number and '1' or '' }
end

calls['end'] = function(owner, keepMs)
  local number = lease(owner)
  if number then call('HSET', KEYS[2], 'e' .. number, int(now + tonumber(keepMs) * 1000)) end
  call('HDEL', KEYS[2], 'o' .. owner)
  return {}
end

function calls.total(key)
  local total, stored = 0, call('HGETALL', key)
  for i = 1, #stored, 2 do
    local number, count = string.match(stored[i + 1], '^(%d+) (%d+)$')
    if number and lease(stored[i]) == number then total = total + (num(count) or 0) end
  end
  return { int(total) }
end

function calls.count(key, owner, delta)
  local number, had = string.match(call('HGET', key, owner) or '', '^(%d+) (%d+)$')
  local current = lease(owner)
  local count = tonumber(delta) + (number == current and num(had) or 0)
  if current and count > 0 then
    call('HSET', key, owner, current .. ' ' .. int(count))
    keep(key, KEEP)
  elseif number then
    call('HDEL', key, owner)
  end
  return calls.total(key)
end

function calls.put(key, name, owner, text, expiresInMs)
  local number = owner == '' and '0' or lease(owner)
  if not number then
    call('HDEL', key, name)
    return {}
  end
  local ms = tonumber(expiresInMs)
  local record = { number, int(now), ms and int(math.max(1, now + ms * 1000)) or '0', owner, text }
  call('HSET', key, name, table.concat(record, ' '))
  keep(key, KEEP + (ms or 0))
  return {}
end

function calls.delete(key, name)
  call('HDEL', key, name)
  return {}
end

function calls.list(key)
  local answer, ends, records = {}, {}, call('HGETALL', key)
  for i = 1, #records, 2 do
    local left, nobody = shown(records[i + 1], ends)
    if left then
      local n = #answer
      answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4] = records[i], records[i + 1], left, nobody
    end
  end
  return answer
end

function calls.get(key, name)
  local record = call('HGET', key, name)
  local left, nobody
  if record then left, nobody = shown(record, {}) end
  return left and { name, record, left, nobody } or {}
end

local sweeps = {}

function sweeps.h(key, before)
  local last = num(call('LINDEX', key, -1)) or 0
  if last < before or last > now + KEEP * 1000 then call('DEL', key) end
end

function sweeps.b(key, before)
  local full = num(call('GET', key)) or 0
  if full < before / 1000 or full > now / 1000 + 2 * KEEP then call('DEL', key) end
end

function sweeps.c(key)
  local stored = call('HGETALL', key)
  for i = 1, #stored, 2 do
    if (lease(stored[i]) or '') ~= string.match(stored[i + 1], '^%d+') then call('HDEL', key, stored[i]) end
  end
  keep(key, KEEP)
end

function sweeps.r(key)
  local ends, records = {}, call('HGETALL', key)
  for i = 1, #records, 2 do
    if not shown(records[i + 1], ends) then call('HDEL', key, records[i]) end
  end
  keep(key, KEEP)
end

function calls.sweep(cursor, pattern, kindAt, idleMs)
  local page = call('SCAN', cursor, 'MATCH', pattern, 'COUNT', ${SWEEP_KEYS})
  for _, key in ipairs(page[2]) do
    local kind = string.sub(key, tonumber(kindAt), tonumber(kindAt))
    local failed = guarded(key, sweeps[kind], key, now - tonumber(idleMs) * 1000)
    if failed then return failed end
  end
  if page[1] == '0' then
    local stored = call('HGETALL', KEYS[2])
    for i = 1, #stored, 2 do
      local ends = num(string.match(stored[i + 1], '%d+$')) or 0
      local isOver = ends <= now or ends > now + KEEP * 1000
      if stored[i] ~= 'n' and isOver then call('HDEL', KEYS[2], stored[i]) end
    end
  end
  return { page[1] }
end

local arguments = {
  hit = 2, spend = 4, begin = 1, renew = 1, ['end'] = 2, count = 2, total = 0, put = 4, delete = 1, list = 0, get = 1,
  sweep = 4
}
local keyless = { begin = true, renew = true, ['end'] = true, sweep = true }
local answers, k, a = {}, 2, 2
while a <= #ARGV do
  local name = ARGV[a]
  local own = {}
  if not keyless[name] then
    k = k + 1
    own[1] = KEYS[k]
  end
  for i = a + 1, a + arguments[name] do own[#own + 1] = ARGV[i] end
  a = a + 1 + arguments[name]
  answers[#answers + 1] = guarded(not keyless[name] and own[1] or nil, calls[name], unpack(own))
end
answers[#answers + 1] = foreign
return answers
`;

/** What EVALSHA calls the script. */
export const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex');
