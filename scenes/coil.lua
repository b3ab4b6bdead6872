-- A thread of thick syrup (150 Pa s) pours onto a plate, folds once or twice and then coils
-- [Batty & Houston 2011]. bench/coil.py runs it with other viscosities and from other heights.
scene {
  method = "tet",
  domain = { size = { 0.2, 0.3, 0.2 } },
  detail = { coarsest = 10, finest = 80, surface = 160 },
  frames = { count = 96, rate = 24 },
  fluid = { density = 1000, viscosity = 150 },
  sources = { emitter { shape = cylinder { from = { 0.1, 0.245, 0.1 }, to = { 0.1, 0.275, 0.1 },
                                           radius = 0.012 },
                        velocity = { 0, -0.4, 0 } } },
  solver = { cfl = 1 },
  render = { camera = { eye = { 0.1, 0.3, 0.5 }, target = { 0.1, 0.075, 0.1 }, fov = 26 },
             water = { 0.75, 0.45, 0.1 } },
}
