-- Water leaks out of a container with holes in its floor: figure 1 of [Ibayashi18], 128 cells along each side.
-- `--set detail.finest=40 --frames 24` is a small variant; `undine render out/warp_leak --show water,cells --cut z=0.5`
-- shows the cells.
local wall, floor, high = 0.07, 0.55, 0.9
local parts = { box { min = {0.1, floor - wall, 0.1}, max = {0.9, high, 0.9} },
                box { min = {0.1 + wall, floor, 0.1 + wall}, max = {0.9 - wall, 1, 0.9 - wall} } }
for i = -1, 1 do
  for k = -1, 1 do
    local x, z = 0.5 + 0.2 * i, 0.5 + 0.2 * k
    parts[#parts + 1] = cylinder { from = {x, floor - 2 * wall, z}, to = {x, floor + wall, z}, radius = 0.05 }
  end
end
scene {
  method = "warp",
  domain = { size = {1, 1, 1} },
  detail = { finest = 128 },
  frames = { count = 60, rate = 24 },
  liquid = { box { min = {0.1 + wall, floor, 0.1 + wall}, max = {0.9 - wall, high - 0.05, 0.9 - wall} } },
  solids = { subtract(parts) },
  output = { mesh = true },
  render = { camera = { eye = {1.7, 0.9, 2.3}, target = {0.5, 0.4, 0.5}, fov = 30 } },
}
