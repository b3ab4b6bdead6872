-- A hare of water falls into a basin: figure 2 of [Ibayashi18], 128 x 64 x 128 cells. The paper's is the Stanford bunny.
-- `--set detail.finest=40 --frames 16` is a small variant.
local function ear(z)
  return capsule { from = {0.44, 0.4, 0.5 + 0.3 * z}, to = {0.37, 0.465, 0.5 + z}, radius = 0.018 }
end
scene {
  method = "warp",
  domain = { size = {1, 0.5, 1} },
  detail = { finest = 128 },
  frames = { count = 48, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.15, 1} },
             sphere { center = {0.55, 0.29, 0.5}, radius = 0.085 }, -- body
             sphere { center = {0.47, 0.37, 0.5}, radius = 0.05 },  -- head
             sphere { center = {0.64, 0.3, 0.5}, radius = 0.03 },   -- tail
             ear(0.05), ear(-0.05) },
  output = { mesh = true },
  render = { camera = { eye = {1.3, 0.75, 1.7}, target = {0.5, 0.18, 0.5}, fov = 30 } },
}
