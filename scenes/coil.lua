-- A thread of thick syrup (150 Pa s) pours onto a plate and coils on itself [Batty & Houston 2011].
-- Left alone it would soon fold to and fro; a hand at the bottle leads it through its first turns,
-- and it goes on by itself.
local mouth = cylinder { from = { 0.04, 0.06, 0.04 }, to = { 0.04, 0.07, 0.04 }, radius = 0.005 }
local function pour(x, z, from, to)
  return emitter { shape = mouth, velocity = { x, -0.3, z }, from = from, to = to }
end

local first, turn, turns = 0.1, 0.3, 2 -- s
local sources = { pour(0, 0, 0, first) }
for i = 0, 8 * turns - 1 do
  local a, t = math.pi * i / 4, first + turn * i / 8
  table.insert(sources, pour(0.04 * math.cos(a), 0.04 * math.sin(a), t, t + turn / 8))
end
table.insert(sources, pour(0, 0, first + turn * turns))

scene {
  method = "tet",
  domain = { size = { 0.08, 0.08, 0.08 } },
  detail = { coarsest = 8, finest = 64, surface = 128 },
  frames = { count = 80, rate = 48 },
  fluid = { density = 1000, viscosity = 150 },
  sources = sources,
  solver = { cfl = 1 },
  render = { camera = { eye = { 0.04, 0.075, 0.2 }, target = { 0.04, 0.028, 0.04 }, fov = 26 },
             water = { 0.75, 0.45, 0.1 } },
}
