-- A drop falls into a pool in two dimensions, on a grid that warps [Ibayashi18]. Takes a few seconds.
scene {
  method = "warp",
  domain = { size = {1, 1} },
  detail = { finest = 96 },
  frames = { count = 48, rate = 48 },
  liquid = { box { min = {0, 0}, max = {1, 0.4} }, sphere { center = {0.5, 0.65}, radius = 0.1 } },
  output = { mesh = true },
}
