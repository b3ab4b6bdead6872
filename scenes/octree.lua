-- A column of water collapses on cells of many sizes: the 3D example of [Hong09], its figures 23 and
-- 35. `undine render out/octree --show particles,cells --cut z=0.5` shows how particles and cells
-- grow with depth. It begins with 48 thousand particles; cells of one size would need 4 million.
scene {
  method = "octree",
  domain = { size = {1, 1, 1} },
  detail = { coarsest = 8, finest = 128 },
  frames = { count = 48, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.6, 1} } },
  probes = { front { axis = "x" }, height { at = {0.05, 0.5} } },
  output = { mesh = true },
}
