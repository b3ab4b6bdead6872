-- After figure 1 of [Chentanez07]: liquid pours down a pair of chutes into a container.
-- Small: --set detail.finest=64 --frames 36; coarser cells do not resolve the chutes.
local function trough(from, to)
  local function tube(up, radius)
    return capsule { from = {from[1], from[2] + up, from[3]}, to = {to[1], to[2] + up, to[3]},
                     radius = radius }
  end
  return subtract { tube(0, 0.16), tube(0.04, 0.1), tube(0.2, 0.18) }
end
scene {
  method = "conforming",
  domain = { size = {1.2, 1.2, 0.6} },
  detail = { coarsest = 8, finest = 96 },
  frames = { count = 120, rate = 24 },
  solids = {
    trough({0.05, 1.0, 0.3}, {0.75, 0.75, 0.3}),
    trough({1.15, 0.55, 0.3}, {0.45, 0.35, 0.3}),
  },
  sources = {
    emitter { shape = sphere { center = {0.12, 1.05, 0.3}, radius = 0.06 }, velocity = {0.8, -0.3, 0} },
  },
  render = { camera = { eye = {0.9, 1.1, 3.4}, target = {0.6, 0.5, 0.3}, fov = 28 } },
}
