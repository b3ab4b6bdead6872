-- After figures 3 and 7 of [Chentanez07]: a block of liquid is released at one side of a closed
-- container, flows over a hemisphere and crashes against the far side.
-- Small: --set detail.finest=32 --frames 36.
scene {
  method = "conforming",
  domain = { size = {1.5, 0.9, 0.6} },
  detail = { coarsest = 8, finest = 96 },
  frames = { count = 96, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {0.45, 0.6, 0.6} } },
  solids = { sphere { center = {0.85, 0, 0.3}, radius = 0.17 } },
  probes = { front { axis = "x" }, height { at = {1.45, 0.3} } },
  render = { camera = { eye = {1.6, 1.3, 3.2}, target = {0.75, 0.25, 0.3}, fov = 28 } },
}
