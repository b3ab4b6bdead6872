-- A boat of heavy wood rides low. A hose fills it until water runs over its side, and it sinks.
local water = 0.3 -- depth, m

local function half(radius, x, lift) -- a capsule along x, pointed upwards at the bow and the stern
  return union { capsule { from = {-x, 0, 0}, to = {x, 0, 0}, radius = radius },
                 capsule { from = {x, 0, 0}, to = {x + 0.1, lift, 0}, radius = 0.75 * radius },
                 capsule { from = {-x, 0, 0}, to = {-x - 0.05, 0.5 * lift, 0}, radius = 0.85 * radius } }
end

local sky = box { min = {-1, 0.05, -1}, max = {1, 1, 1} }
local hull = subtract { half(0.14, 0.16, 0.05), sky }
local boat = subtract { hull, half(0.11, 0.16, 0.05) }
local function put(shape) return move { shape, rotate = {0, 15, 0}, by = {0.5, water + 0.02, 0.35} } end

scene {
  method  = "uniform",
  domain  = { size = {1, 0.7, 0.7}, open = {"top"} },
  detail  = { coarsest = 10, finest = 80, surface = 140 },
  frames  = { count = 96, rate = 24 },
  liquid  = { subtract { box { min = {0, 0, 0}, max = {1, water, 0.7} }, put(hull) } },
  solids  = { solid { put(boat), density = 1600, friction = 0.3, name = "boat" } },
  sources = { emitter { shape = cylinder { from = {0.56, 0.6, 0.34}, to = {0.56, 0.66, 0.34}, radius = 0.03 },
                        velocity = {0, -2, 0}, to = 3 } },
  render  = { camera = { eye = {0.75, 1.15, 1.4}, target = {0.5, 0.22, 0.35}, fov = 32 } },
}
