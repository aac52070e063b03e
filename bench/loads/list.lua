-- LUA_PATH='<this folder>/?.lua' wrk -s list.lua <url> -- <file: one thread id per line> <authorization>
-- Lists the comments of one thread after another.
local requests = require('requests')

function init(args)
  local prepared = {}
  for i, thread in ipairs(requests.lines(args[1])) do
    prepared[i] = wrk.format('GET', '/api/v1/threads/' .. thread .. '/comments', { ['Authorization'] = args[2] })
  end
  request = requests.round(prepared)
end

done = requests.done
