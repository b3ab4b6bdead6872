-- A tank at rest. Its surface is between two layers of cells and must stay flat.
local depth = 0.437

scene {
  domain = { size = {1, 1, 1} },
  detail = { finest = 32 },
  frames = { count = 48, rate = 24 },
  liquid = { plane { point = {0, depth, 0}, normal = {0, 1, 0} } },
  probes = {
    height { name = "middle", at = {0.5, 0.5} },
    height { name = "corner", at = {0.05, 0.05} },
    pressure { name = "floor", at = {0.5, 0.02, 0.5} },
  },
}
