-- A column of water collapses, runs along the floor of a closed box and meets a pillar.
scene {
  method = "uniform",
  domain = { size = {2, 1, 0.75} },
  detail = { finest = 112 },
  frames = { count = 60, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {0.6, 0.65, 0.75} } },
  solids = { cylinder { from = {1.25, 0, 0.375}, to = {1.25, 1, 0.375}, radius = 0.1 } },
  probes = { front { axis = "x" }, height { at = {0.05, 0.375} } },
}
