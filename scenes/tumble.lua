-- Fifty bodies of three shapes are poured into a tank: balls and crates float, drums sink.
local s = {}
for k = 0, 1 do for j = 0, 4 do for i = 0, 4 do
  local x, y, z = .14 + .18 * i, .62 + .17 * k, .14 + .18 * j
  local n = (i + 2 * j + 3 * k) % 3
  if n == 0 then s[#s + 1] = sphere { center = {x, y, z}, radius = .06, density = 300 + 100 * ((i + j) % 4), friction = .3 }
  elseif n == 1 then s[#s + 1] = box { min = {x - .06, y - .05, z - .05}, max = {x + .06, y + .05, z + .05}, density = 600, friction = .3, spin = {1, 2, 3} }
  else s[#s + 1] = solid { cylinder { from = {x, y - .05, z}, to = {x, y + .05, z}, radius = .05 }, density = 1500, friction = .3 } end
end end end
scene { method = "uniform", domain = { size = {1, 1, 1} }, detail = { coarsest = 8, finest = 64 }, frames = { count = 96, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {1, .35, 1} } }, solids = s }
