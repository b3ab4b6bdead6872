-- After figure 6 of [Chentanez07]: a figure of water in the shape of an angel falls on the floor and
-- splashes. Its wings are thin lenses, six cells thick.
-- Small: --set detail.finest=40 --frames 24.
local function limb(a, b, r) return capsule { from = a, to = b, radius = r } end
local function wing(side) -- two balls' overlap, leaning back and out
  local lens = intersect { sphere { center = {0, 0, 0.24}, radius = 0.27 },
                           sphere { center = {0, 0, -0.24}, radius = 0.27 } }
  return move { lens, scale = 1.35, rotate = {10, side * 35, side * 20}, by = {side * 0.18, 0.5, -0.1} }
end
local angel = union {
  limb({0, 0.13, 0}, {0, 0.16, 0}, 0.13), limb({0, 0.16, 0}, {0, 0.36, 0}, 0.095), -- robe
  limb({0, 0.36, 0}, {0, 0.52, 0}, 0.075), -- chest
  limb({0, 0.52, 0}, {0, 0.64, 0}, 0.035), sphere { center = {0, 0.68, 0.01}, radius = 0.068 },
  limb({0.07, 0.53, 0}, {0.15, 0.42, 0.1}, 0.032), limb({0.15, 0.42, 0.1}, {0.03, 0.47, 0.17}, 0.028),
  limb({-0.07, 0.53, 0}, {-0.15, 0.42, 0.1}, 0.032), limb({-0.15, 0.42, 0.1}, {-0.03, 0.47, 0.17}, 0.028),
  wing(1), wing(-1),
}
scene {
  method = "conforming",
  domain = { size = {1, 1, 1} },
  detail = { coarsest = 8, finest = 96 },
  frames = { count = 48, rate = 24 },
  liquid = { move { angel, by = {0.5, 0.1, 0.5} } },
  render = { camera = { eye = {1.5, 1.0, 2.9}, target = {0.5, 0.38, 0.5}, fov = 28 } },
}
