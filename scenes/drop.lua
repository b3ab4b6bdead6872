-- A drop of water falls into a pool. Its crater closes and throws up a jet, which surface tension
-- draws out to a bead. 48 mm across.
local mm = 1e-3

scene {
  method  = "tet",
  domain  = { size = {48 * mm, 48 * mm, 48 * mm} },
  detail  = { coarsest = 12, finest = 96, surface = 160 },
  frames  = { count = 75, rate = 500 },
  fluid   = { density = 1000, viscosity = 1e-3, surface_tension = 0.072 },
  liquid  = {
    box { min = {0, 0, 0}, max = {48 * mm, 16 * mm, 48 * mm} },
    sphere { center = {24 * mm, 22 * mm, 24 * mm}, radius = 3.5 * mm },
  },
  render  = { camera = { eye = {24 * mm, 34 * mm, 110 * mm}, target = {24 * mm, 17 * mm, 24 * mm}, fov = 24 } },
}
