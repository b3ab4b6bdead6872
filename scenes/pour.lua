-- A jet falls onto a ball in a basin; an overflow along one side keeps the level constant.
local level = 0.12

scene {
  domain  = { size = {1.2, 1, 0.8}, open = {"top"} },
  detail  = { finest = 72 },
  frames  = { count = 120 },
  liquid  = { box { min = {0, 0, 0}, max = {1.2, level, 0.8} } },
  solids  = { sphere { center = {0.62, 0.2, 0.4}, radius = 0.14, friction = 0.1 } },
  sources = {
    emitter { shape = cylinder { from = {0.08, 0.8, 0.4}, to = {0.16, 0.8, 0.4}, radius = 0.05 },
              velocity = {1.5, 0, 0}, from = 0, to = 3.5 },
    drain { shape = box { min = {1.15, level + 0.02, 0}, max = {1.2, 1, 0.8} } },
  },
  probes  = { height { name = "basin", at = {1, 0.2} } },
}
