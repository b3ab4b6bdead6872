-- A drop falls into a pool and throws up a crown: figure 8 of [Ibayashi18], 128 cells along each side, with the narrow
-- band of particles of its results. `--set detail.finest=48 --frames 16` is a small variant;
-- `bench/detail.py` compares its cost with that of `uniform`.
scene {
  method = "warp",
  domain = { size = {1, 1, 1} },
  detail = { finest = 128 },
  frames = { count = 32, rate = 48 },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.35, 1} },
             sphere { center = {0.5, 0.55, 0.5}, radius = 0.1 }, velocity = {0, 0, 0} },
  solver = { band = 4 },
  output = { mesh = true },
  render = { camera = { eye = {1.3, 0.9, 1.9}, target = {0.5, 0.4, 0.5}, fov = 30 } },
}
