-- Thick syrup spreads over a floor [Huppert 1982]: x = 1.4112 (g A^3 / (3 nu))^(1/5) t^(1/5), which
-- is 0.2834 m after 1 s and 0.4492 m after 10 s for A = 0.01 m2 and nu = 0.01 m2/s. This is a
-- slice: the left side is the plane of symmetry, and the syrup slides along front and back.
local A, nu = 0.01, 0.01

scene {
  method = "tet",
  domain = { size = { 0.56, 0.14, 0.04 },
             slip = { left = math.huge, right = math.huge, front = math.huge, back = math.huge } },
  detail = { coarsest = 14, finest = 112, surface = 112 },
  frames = { count = 10, rate = 1 },
  fluid = { density = 1000, viscosity = 1000 * nu },
  liquid = { box { min = { 0, 0, 0 }, max = { 0.1, A / 0.1, 0.04 } } },
  probes = { front { axis = "x" }, height { name = "crest", at = { 0.004, 0.02 } } },
}
