/**
 * Lua for what other programs have written under keys of ours (docs/decisions/0087-foreign-rows-and-keys.md): a part of
 * the script, between its bounds and its calls.
 *
 * - `num(text)`: a number as the script writes them, 0 to 2^53; nil for any other text, and for a missing one.
 * - `forget(key)`: removes a key that is not what the script writes, and has its name answered (`foreign`).
 * - `guarded(key, work, ...)`: the answer of `work(...)`, or '!' and the error. If the leases or `key` (nil for a call
 *   without one) are of another type than ours, they are removed, and the work is done again: it must have changed
 *   nothing before it finds that out.
 */
export const FOREIGN_LUA = `
local foreign = {}
local types = { l = 'hash', h = 'list', b = 'string', c = 'hash', r = 'hash' }

local function num(text)
  local number = text and tonumber(text)
  if number and number >= 0 and number < 9007199254740992 then return number end
end

local function forget(key)
  redis.call('UNLINK', key)
  foreign[#foreign + 1] = key
end

local function forgetOtherTypes(key)
  local before = #foreign
  for _, name in ipairs({ KEYS[2], key }) do
    local kind = redis.call('TYPE', name).ok
    if kind ~= 'none' and kind ~= types[string.sub(name, #KEYS[1], #KEYS[1])] then forget(name) end
  end
  return #foreign > before
end

local function guarded(key, work, ...)
  local done, answer = pcall(work, ...)
  if done then return answer end
  local message = type(answer) == 'table' and answer.err or tostring(answer)
  if string.find(message, 'WRONGTYPE', 1, true) and forgetOtherTypes(key) then
    done, answer = pcall(work, ...)
    if done then return answer end
    message = type(answer) == 'table' and answer.err or tostring(answer)
  end
  return { '!', message }
end
`;
