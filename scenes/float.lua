-- Three ducks and four crates in a bath. A wave goes through it and rocks them; one crate is heavier
-- than water and stays where it sinks.
local water = 0.24 -- depth, m

-- A duck that looks along +x: a broad body, a head, a beak, a tail.
local function duck(x, z, turn, name)
  local d = union {
    capsule { from = {-0.05, 0, -0.045}, to = {0.05, 0, -0.03}, radius = 0.07 },
    capsule { from = {-0.05, 0, 0.045}, to = {0.05, 0, 0.03}, radius = 0.07 },
    sphere { center = {0.065, 0.095, 0}, radius = 0.05 },
    capsule { from = {0.1, 0.09, 0}, to = {0.135, 0.085, 0}, radius = 0.016 },
    capsule { from = {-0.1, 0.03, 0}, to = {-0.14, 0.065, 0}, radius = 0.022 },
  }
  return solid { move { d, rotate = {0, turn, 0}, by = {x, water + 0.04, z} },
                 density = 250, friction = 0.3, restitution = 0.3, name = name }
end

local function crate(x, y, z, size, density, turn)
  local s = 0.5 * size
  local b = box { min = {-s, -s, -s}, max = {s, s, s} }
  return solid { move { b, rotate = {0, turn, 0}, by = {x, y, z} }, density = density,
                 friction = 0.5, restitution = 0.2 }
end

scene {
  method  = "uniform",
  domain  = { size = {1.6, 0.7, 0.8}, open = {"top"} },
  detail  = { coarsest = 12, finest = 96, surface = 160 },
  frames  = { count = 120, rate = 24 },
  liquid  = { box { min = {0, 0, 0}, max = {1.6, water, 0.8} },
              box { min = {0, 0, 0}, max = {0.28, 0.55, 0.8} } },
  solids  = { duck(0.62, 0.24, 20, "duck1"), duck(0.86, 0.56, -35, "duck2"),
              duck(1.2, 0.3, 160, "duck3"),
              crate(1.12, water + 0.06, 0.66, 0.13, 400, 15), crate(1.4, water + 0.05, 0.6, 0.11, 600, 40),
              crate(0.6, water + 0.07, 0.52, 0.14, 300, -20), crate(1.36, 0.075, 0.2, 0.14, 2200, 10) },
  render  = { camera = { eye = {0.9, 0.95, 2.4}, target = {0.8, 0.2, 0.4}, fov = 32 } },
}
