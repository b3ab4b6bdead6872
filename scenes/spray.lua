-- After figure 4 of [Chentanez07]: a jet meets a post and spreads as a thin sheet, which thickening
-- keeps. Compare with --set solver.thickening=0. Small: --set detail.finest=32 --frames 24.
scene {
  method = "conforming",
  domain = { size = {1, 1, 1} },
  detail = { coarsest = 8, finest = 80 },
  frames = { count = 48, rate = 24 },
  solids = { cylinder { from = {0.5, 0, 0.5}, to = {0.5, 0.45, 0.5}, radius = 0.12 } },
  sources = {
    emitter { shape = cylinder { from = {0.5, 0.85, 0.5}, to = {0.5, 0.95, 0.5}, radius = 0.07 },
              velocity = {0, -2, 0} },
  },
  render = { camera = { eye = {1.6, 1.1, 3.0}, target = {0.5, 0.4, 0.5}, fov = 28 } },
}
