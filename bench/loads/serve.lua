-- LUA_PATH='<this folder>/?.lua' wrk -s serve.lua <url> -- <path> [<header line>…]
-- Requests one file repeatedly.
local requests = require('requests')

function init(args)
  local headers = {}
  for i = 2, #args do
    local name, value = args[i]:match('^([^:]+): (.*)$')
    headers[name] = value
  end
  request = requests.round({ wrk.format('GET', args[1], headers) })
end

done = requests.done
