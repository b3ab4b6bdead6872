-- After figure 1 of [Chentanez07]: liquid pours down a pair of chutes into a container.
-- Small: --set detail.finest=32 --frames 36.
local function chute(from, to)
  return capsule { from = from, to = to, radius = 0.12 }
end
local function trough(from, to)
  local up = function(p) return {p[1], p[2] + 0.1, p[3]} end
  return subtract { chute(from, to), capsule { from = up(from), to = up(to), radius = 0.13 } }
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
    emitter { shape = sphere { center = {0.12, 1.07, 0.3}, radius = 0.06 }, velocity = {0.8, -0.3, 0} },
  },
  render = { camera = { eye = {0.9, 1.1, 3.4}, target = {0.6, 0.5, 0.3}, fov = 28 } },
}
