-- A ball of water falls on a disc, in two dimensions: figure 41 of [Hong09]. With
-- `--set fluid.surface_tension=0` the water sprays apart, as on the left of that figure; with
-- tension, on the right, it gathers in threads and drops.
local mm = 1e-3

scene {
  method = "octree",
  domain = { size = {60 * mm, 45 * mm} },
  detail = { coarsest = 16, finest = 128 },
  frames = { count = 24, rate = 400 },
  fluid  = { density = 1000, surface_tension = 0.073 },
  liquid = { sphere { center = {30 * mm, 34 * mm}, radius = 6 * mm }, velocity = {0, -0.8} },
  solids = { sphere { center = {30 * mm, 14 * mm}, radius = 8 * mm } },
}
