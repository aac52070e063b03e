-- LUA_PATH='<this folder>/?.lua' wrk -s upload.lua <url> -- <file: the path of one body per line> <Content-Type> [<header line>…]
-- Uploads one prepared multipart body after another.
local requests = require('requests')

function init(args)
  local headers = { ['Content-Type'] = args[2] }
  for i = 3, #args do
    local name, value = args[i]:match('^([^:]+): (.*)$')
    headers[name] = value
  end
  local prepared = {}
  for i, path in ipairs(requests.lines(args[1])) do
    local file = assert(io.open(path, 'rb'))
    prepared[i] = wrk.format('POST', '/api/v1/upload', headers, file:read('*a'))
    file:close()
  end
  request = requests.round(prepared)
end

done = requests.done
