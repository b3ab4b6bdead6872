-- A column of thick liquid collapses in a thin slab [Batty & Houston 2011, figure 6]: run it with
-- --method staggered --set solver.coupling=implicit, =flip and =pic, and compare the pictures.
scene {
  method = "tet",
  domain = { size = { 1, 0.8, 0.08 }, slip = { front = math.huge, back = math.huge } },
  detail = { coarsest = 8, finest = 64, surface = 128 },
  frames = { count = 48, rate = 24 },
  fluid = { density = 1000, viscosity = 60 },
  liquid = { box { min = { 0.35, 0, 0 }, max = { 0.65, 0.6, 0.08 } } },
  probes = { front { axis = "x" }, height { name = "crest", at = { 0.5, 0.04 } } },
}
