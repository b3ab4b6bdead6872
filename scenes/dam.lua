-- A column of water breaks and runs along the floor of a closed box.
scene {
  method = "uniform",
  domain = { size = {1, 1, 1} },
  detail = { finest = 64 },
  frames = { count = 72, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } },
  probes = { front { axis = "x" }, height { at = {0.05, 0.5} } },
}
