-- Water is poured into a bowl of filigree, a shell pierced by a gyroid, and runs out through its
-- holes, after figure 7 of Ando, Thuerey and Wojtan 2013. The bars are 15 finest cells thick; cells
-- are small near them because they are curved.
--
-- A small variant, whose bars are two cells thick:
--   undine run scenes/figure7.lua --set detail.finest=64 --set frames.count=60
local center, radius, thick = {0.5, 0.6, 0.5}, 0.25, 0.035
local wave = 2 * math.pi / 0.13

local sin, cos, sqrt, abs, max = math.sin, math.cos, math.sqrt, math.abs, math.max
local function bowl(x, y, z)
  local a, b, c = x - center[1], y - center[2], z - center[3]
  local shell = abs(sqrt(a * a + b * b + c * c) - radius) - thick / 2
  if shell > 0.02 then return shell end -- the holes make no difference there
  a, b, c = wave * a, wave * b, wave * c
  local gyroid = sin(a) * cos(b) + sin(b) * cos(c) + sin(c) * cos(a)
  return max(shell, (gyroid - 0.3) / (1.6 * wave)) -- about a distance
end

local filigree = field {
  bowl,
  min = {0.23, 0.33, 0.23}, max = {0.77, center[2], 0.77}, -- the lower half
}

scene {
  method  = "tet",
  domain  = { size = {1, 1, 1} },
  detail  = { coarsest = 16, finest = 512 },
  frames  = { count = 480, rate = 120 },
  liquid  = { sphere { center = {0.5, 0.75, 0.5}, radius = 0.1 } },
  solids  = { filigree },
  sources = {
    emitter { shape = cylinder { from = {0.5, 0.9, 0.5}, to = {0.5, 0.95, 0.5}, radius = 0.06 },
              velocity = {0, -1.5, 0}, from = 0, to = 3 },
  },
}
