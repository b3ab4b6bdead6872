-- A tank at rest with cells of all sizes side by side. Only sizing.custom decides: fine at one
-- wall, four times as coarse at the other, with a fine spot in the surface, which must stay flat.
local depth = 0.437

scene {
  method = "tet",
  domain = { size = {1, 1, 1} },
  detail = { coarsest = 8, finest = 64 },
  frames = { count = 48, rate = 24 },
  liquid = { plane { point = {0, depth, 0}, normal = {0, 1, 0} } },
  sizing = {
    depth = false, curvature = false, solid_curvature = false, strain = false, film = false,
    custom = function(x, y, z)
      local spot = math.sqrt((x - 0.7)^2 + (y - depth)^2 + (z - 0.4)^2)
      return math.min(1 / 64 + 0.05 * x, 1 / 64 + 0.25 * spot)
    end,
  },
  probes = {
    height { name = "fine", at = {0.1, 0.5} },
    height { name = "spot", at = {0.7, 0.4} },
    height { name = "coarse", at = {0.95, 0.95} },
    pressure { name = "floor", at = {0.5, 0.02, 0.5} },
  },
}
