-- A rowing boat: a hollow hull with two benches. A wave comes from the left and rocks it; its wall
-- of three centimetres keeps the water out.
local water = 0.25 -- depth, m

local function half(radius, x, lift) -- a capsule along x, pointed upwards at the bow and the stern
  return union { capsule { from = {-x, 0, 0}, to = {x, 0, 0}, radius = radius },
                 capsule { from = {x, 0, 0}, to = {x + 0.1, lift, 0}, radius = 0.75 * radius },
                 capsule { from = {-x, 0, 0}, to = {-x - 0.05, 0.5 * lift, 0}, radius = 0.85 * radius } }
end

local sky = box { min = {-1, 0.05, -1}, max = {1, 1, 1} }
local hull = subtract { half(0.13, 0.16, 0.04), sky }
local boat = union {
  subtract { hull, half(0.1, 0.16, 0.04) },
  intersect { hull, union { box { min = {-0.1, 0, -1}, max = {-0.06, 0.03, 1} },
                            box { min = {0.08, 0, -1}, max = {0.12, 0.03, 1} } } },
}
local place = { rotate = {0, 20, 0}, by = {0.95, water + 0.03, 0.4} }
local function put(shape) return move { shape, rotate = place.rotate, by = place.by } end

scene {
  method = "uniform",
  domain = { size = {1.6, 0.7, 0.8}, open = {"top"} },
  detail = { coarsest = 12, finest = 96, surface = 160 },
  frames = { count = 96, rate = 24 },
  liquid = { subtract { box { min = {0, 0, 0}, max = {1.6, water, 0.8} }, put(hull) },
             box { min = {0, 0, 0}, max = {0.2, 0.4, 0.8} } },
  solids = { solid { put(boat), density = 600, friction = 0.3, name = "boat" } },
  render = { camera = { eye = {1.1, 0.95, 2.3}, target = {0.85, 0.25, 0.4}, fov = 30 } },
}
