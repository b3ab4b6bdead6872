-- A drop of water falls into a pool. Its crater closes and throws up a jet. 40 mm across.
local mm = 1e-3

scene {
  method  = "tet",
  domain  = { size = {40 * mm, 48 * mm, 40 * mm}, -- sides that held on to the falling pool would stir it
              slip = { left = math.huge, right = math.huge, front = math.huge, back = math.huge } },
  detail  = { coarsest = 12, finest = 96, surface = 160 },
  frames  = { count = 40, rate = 500 },
  fluid   = { density = 1000, viscosity = 1e-3, surface_tension = 0.072 },
  liquid  = {
    box { min = {0, 0, 0}, max = {40 * mm, 16 * mm, 40 * mm} },
    sphere { center = {20 * mm, 20 * mm, 20 * mm}, radius = 2.7 * mm },
    velocity = {0, -1.6, 0}, -- the floor stops the pool at once
  },
  render  = { camera = { eye = {20 * mm, 32 * mm, 100 * mm}, target = {20 * mm, 18 * mm, 20 * mm}, fov = 24 } },
}
