-- LUA_PATH='<this folder>/?.lua' wrk -s create.lua <url> -- <file: one thread id per line> <authorization>
-- Creates comments in one thread after another, as 50 users in rotation.
local requests = require('requests')
local text = 'Could we move this button a little to the left? It hides the total when the window is narrow.'

function init(args)
  local headers = { ['Content-Type'] = 'application/json', ['Authorization'] = args[2] }
  local prepared = {}
  for i, thread in ipairs(requests.lines(args[1])) do
    local body = string.format('{"userId":"user-%d","body":"%s"}', i % 50, text)
    prepared[i] = wrk.format('POST', '/api/v1/threads/' .. thread .. '/comments', headers, body)
  end
  request = requests.round(prepared)
end

done = requests.done
