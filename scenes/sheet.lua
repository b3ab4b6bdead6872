-- A sheet of syrup (100 Pa s) falls onto a plate and folds back and forth [Batty & Houston 2011].
scene {
  method = "tet",
  domain = { size = { 0.24, 0.3, 0.24 } },
  detail = { coarsest = 10, finest = 80, surface = 160 },
  frames = { count = 72, rate = 24 },
  fluid = { density = 1000, viscosity = 100 },
  sources = { emitter { shape = box { min = { 0.109, 0.245, 0.06 }, max = { 0.131, 0.275, 0.18 } },
                        velocity = { 0, -0.4, 0 } } },
  solver = { cfl = 1 },
}
