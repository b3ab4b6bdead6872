-- A thread of thick syrup (150 Pa s) pours onto a plate: what bench/coil.py runs with other
-- viscosities and from other heights.
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
}
