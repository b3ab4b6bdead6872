-- Four drops make ripples on a pool: figure 6 of [Ibayashi18], 128 x 64 x 128 cells. The grid carries the surface, without
-- particles, and gathers strongly at it; as in the paper it stays as it is at the start (`sizing.follow`).
-- `--set detail.finest=48 --frames 24` is a small variant.
local drops = { box { min = {0, 0, 0}, max = {1, 0.25, 1} } }
for _, at in ipairs { {0.32, 0.31, 0.36}, {0.68, 0.33, 0.3}, {0.62, 0.36, 0.7}, {0.28, 0.39, 0.66} } do
  drops[#drops + 1] = sphere { center = at, radius = 0.03 }
end
scene {
  method = "warp",
  domain = { size = {1, 0.5, 1} },
  detail = { finest = 128 },
  frames = { count = 48, rate = 24 },
  liquid = drops,
  sizing = { strength = 8, follow = false },
  solver = { surface = "level-set", interpolation = "weno6", maccormack = true },
  output = { mesh = true, particles = false },
  render = { camera = { eye = {1.2, 0.8, 1.6}, target = {0.5, 0.2, 0.5}, fov = 30 } },
}
