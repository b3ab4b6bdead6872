-- A drop of milk falls onto a film of it and throws up a crown. 40 mm across, 20 ms.
local mm = 1e-3

scene {
  method  = "tet",
  domain  = { size = {40 * mm, 25 * mm, 40 * mm}, -- sides that held on to the falling film would stir it
              slip = { left = math.huge, right = math.huge, front = math.huge, back = math.huge } },
  detail  = { coarsest = 10, finest = 96, surface = 192 },
  frames  = { count = 40, rate = 2000 },
  fluid   = { density = 1030, viscosity = 2e-3, surface_tension = 0.046 },
  liquid  = {
    box { min = {0, 0, 0}, max = {40 * mm, 2 * mm, 40 * mm} },
    sphere { center = {20 * mm, 6 * mm, 20 * mm}, radius = 3 * mm },
    velocity = {0, -3.2, 0}, -- the floor stops the film at once
  },
  render  = { camera = { eye = {20 * mm, 30 * mm, 78 * mm}, target = {20 * mm, 4 * mm, 20 * mm}, fov = 30 } },
}
