-- A dam break is combed by a row of cylinders: figure 3 of [Ibayashi18], 128 x 64 x 128 cells, which gather around the
-- cylinders as well. `--set detail.finest=40 --frames 16` is a small variant.
local teeth = {}
for i = 0, 6 do
  local z = 0.08 + 0.14 * i
  teeth[#teeth + 1] = cylinder { from = {0.6, -0.1, z}, to = {0.6, 0.6, z}, radius = 0.035 }
end
scene {
  method = "warp",
  domain = { size = {1, 0.5, 1} },
  detail = { finest = 128 },
  frames = { count = 48, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {0.35, 0.35, 1} } },
  solids = teeth,
  sizing = { depth = true, solid_curvature = true, strain = true },
  output = { mesh = true },
  render = { camera = { eye = {1.6, 0.8, 1.5}, target = {0.5, 0.12, 0.5}, fov = 30 } },
}
