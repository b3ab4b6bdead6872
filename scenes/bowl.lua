-- A heavy ball falls through the water of a bowl, which splashes out over the rim. Cells of
-- `conforming` follow the bowl's wall and the ball.
-- Small: --set detail.finest=32 --frames 18.
scene {
  method = "conforming",
  domain = { size = {1, 0.8, 1} },
  detail = { coarsest = 8, finest = 80 },
  frames = { count = 48, rate = 24 },
  liquid = { box { min = {0.05, 0.02, 0.05}, max = {0.95, 0.3, 0.95} } },
  solids = {
    subtract { box { min = {-1, -1, -1}, max = {2, 0.36, 2} }, sphere { center = {0.5, 0.46, 0.5}, radius = 0.42 } },
    solid { sphere { center = {0.5, 0.55, 0.5}, radius = 0.1 }, density = 3000, velocity = {0, -2, 0}, name = "ball" },
  },
  probes = { height { name = "side", at = {0.25, 0.5} } },
  render = { camera = { eye = {1.3, 1.5, 2.4}, target = {0.5, 0.3, 0.5}, fov = 30 } },
}
