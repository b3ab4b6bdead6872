-- A breaking dam: figure 5 of [Ibayashi18]. `--set detail.finest=40 --frames 16` is a small variant.
scene {
  method = "warp",
  domain = { size = {1, 0.5, 0.5} },
  detail = { finest = 128 },
  frames = { count = 48, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {0.35, 0.35, 0.5} } },
  probes = { front { axis = "x" } },
  output = { mesh = true },
  render = { camera = { eye = {1.3, 0.8, 1.7}, target = {0.5, 0.15, 0.25}, fov = 30 } },
}
