-- A drop falls into a pool, as in figure 8 of [Ibayashi18]: for detail.py.
scene {
  domain = { size = {1, 1, 1} },
  detail = { finest = 48 },
  frames = { count = 16, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.35, 1} }, sphere { center = {0.5, 0.6, 0.5}, radius = 0.12 } },
}
