-- The column of bench/mantaflow_dam.py: what both programs are timed on.
scene {
  method = "uniform",
  domain = { size = {1, 1, 1} },
  detail = { finest = 64, surface = 64 },
  frames = { count = 24, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } },
}
