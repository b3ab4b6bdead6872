-- A heap of thick syrup spreads over a floor [Huppert 1982]:
-- r = 0.8939 (g V^3 / (3 nu))^(1/8) t^(1/8), which is 0.1382 m after 1 s and 0.1844 m
-- after 10 s for V = 0.001 m3 and nu = 0.01 m2/s. This is a quarter: left and back are planes of
-- symmetry.
local V, nu = 0.001, 0.01
local r = 0.07
local h = V / (math.pi * r * r)

scene {
  method = "tet",
  domain = { size = { 0.21, 0.105, 0.21 },
             slip = { left = math.huge, right = math.huge, front = math.huge, back = math.huge } },
  detail = { coarsest = 10, finest = 80, surface = 80 },
  frames = { count = 10, rate = 1 },
  fluid = { density = 1000, viscosity = 1000 * nu },
  liquid = { cylinder { from = { 0, -0.1, 0 }, to = { 0, h, 0 }, radius = r } },
  probes = { front { name = "x", axis = "x" }, front { name = "z", axis = "z" },
             height { name = "crest", at = { 0.004, 0.004 } } },
}
