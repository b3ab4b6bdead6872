-- A column of water collapses in two dimensions, on cells of many sizes: the 2D example of [Hong09].
-- It takes one to three thousand particles, `--method uniform` 26 thousand.
scene {
  method = "octree",
  domain = { size = {2, 1} },
  detail = { coarsest = 16, finest = 256 },
  frames = { count = 72, rate = 24 },
  liquid = { box { min = {0, 0}, max = {0.6, 0.65} } },
  probes = { front { axis = "x" }, height { at = {0.05} } },
}
