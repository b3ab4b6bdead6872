-- A figure of 40 Pa s is dropped on its head [Batty & Houston 2011, figure 2]. It is built from
-- shapes and ten centimetres tall; gravity would flatten a larger one at once. For a closed mesh
-- write liquid = { move { mesh { file = "figure.ply" }, by = ..., rotate = ... } }.
local function limb(x, y, z, u, v, w, r)
  return capsule { from = { x, y, z }, to = { u, v, w }, radius = r }
end
local figure = union {
  limb(0, 0.0, 0, 0, 0.14, 0, 0.09), -- body
  sphere { center = { 0, 0.30, 0 }, radius = 0.075 }, -- head
  limb(0, 0.2, 0, 0, 0.3, 0, 0.045), -- neck
  limb(0.03, 0.35, 0, 0.07, 0.43, 0, 0.02), limb(-0.03, 0.35, 0, -0.07, 0.43, 0, 0.02), -- ears
  limb(0.07, 0.18, 0, 0.24, 0.26, 0.02, 0.032), limb(-0.07, 0.18, 0, -0.24, 0.26, 0.02, 0.032),
  limb(0.05, -0.05, 0, 0.10, -0.26, 0.03, 0.042), limb(-0.05, -0.05, 0, -0.10, -0.26, 0.03, 0.042),
  limb(0, -0.06, -0.05, 0, -0.16, -0.22, 0.026), limb(0, -0.16, -0.22, 0, -0.30, -0.26, 0.016),
}
scene {
  method = "tet",
  domain = { size = { 0.12, 0.132, 0.12 } },
  detail = { coarsest = 11, finest = 88, surface = 176 },
  frames = { count = 72, rate = 96 },
  fluid = { density = 1000, viscosity = 40 },
  liquid = { move { figure, by = { 0.06, 0.065, 0.06 }, rotate = { 0, 0, 180 }, scale = 0.12 } },
}
