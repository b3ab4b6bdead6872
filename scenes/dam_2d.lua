-- A dam break in two dimensions: a domain with two sides is flat. Takes a few seconds.
scene {
  method = "uniform",
  domain = { size = {2, 1} },
  detail = { finest = 128 },
  frames = { count = 72, rate = 24 },
  liquid = { box { min = {0, 0}, max = {0.5, 0.7} } },
  solids = { sphere { center = {1.3, 0.05}, radius = 0.12 } },
  probes = { front { axis = "x" }, height { at = {0.05} }, pressure { at = {0.02, 0.02} } },
}
