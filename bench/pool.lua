-- Waves in a basin with pillars, and drops above them: what solvers are timed on. The surface is
-- large, so that with `tet` most cells are fine. bench/solvers.py sets method and size.
local function depth(x, y, z)
  return y - 0.42 - 0.06 * math.sin(7 * x + 1) - 0.05 * math.cos(9 * z + 4 * x)
end
local drops = {}
for i = 1, 40 do
  drops[i] = sphere { center = { 0.1 + 1.8 * (i * 0.618 % 1), 0.62 + 0.2 * (i * 0.414 % 1),
                                 0.1 + 1.8 * (i * 0.732 % 1) }, radius = 0.02 + 0.02 * (i * 0.27 % 1) }
end
scene {
  domain = { size = {2, 1, 2} },
  detail = { coarsest = 8, finest = 64 },
  frames = { count = 1, rate = 24 },
  liquid = { field { depth, min = {0, 0, 0}, max = {2, 0.7, 2} },
             union(drops) },
  solids = { cylinder { from = {0.6, 0, 0.7}, to = {0.6, 1, 0.7}, radius = 0.15 },
             sphere { center = {1.4, 0.3, 1.3}, radius = 0.25 } },
  -- the finest cells at the surface, whatever detail.finest is
  sizing = { custom = function(x, y, z, t) return 0.25 * math.abs(depth(x, y, z)) end },
  output = { surface = false, particles = false },
}
