-- Things thrown into a basin, after the scenes of [Hong09] in which objects meet water: a heavy ball
-- sinks, a crate and a ring of light wood come up again and float. The hole behind the ball closes, and
-- a thin jet leaps up from there and falls back (after 0.4 to 0.7 s).
scene {
  method  = "octree",
  domain  = { size = {1, 0.75, 0.75} },
  detail  = { coarsest = 8, finest = 64, surface = 128 },
  frames  = { count = 60, rate = 30 },
  liquid  = { plane { point = {0, 0.3, 0}, normal = {0, 1, 0} } },
  solids  = {
    sphere { center = {0.25, 0.5, 0.25}, radius = 0.07, name = "ball", density = 2500,
             velocity = {0.8, -2.5, 0.3} },
    box { min = {0.62, 0.45, 0.3}, max = {0.76, 0.59, 0.44}, name = "crate", density = 500,
          velocity = {-0.6, -2, 0}, spin = {1, 0.5, 4} },
    torus { center = {0.45, 0.6, 0.55}, axis = {0, 1, 0}, radius = 0.08, tube = 0.025, name = "ring",
            density = 400, velocity = {0, -1.5, -0.4}, spin = {2, 0, 1} },
  },
  render  = { camera = { eye = {1.3, 1.1, 2.2}, target = {0.5, 0.3, 0.35}, fov = 32 } },
}
