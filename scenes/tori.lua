-- Three rings fall onto the floor; from left to right the liquid thins from 125 Pa s to none
-- [Batty & Houston 2011, figure 7].
local function ring(x)
  return move { torus { center = { 0, 0, 0 }, axis = { 0, 0, 1 }, radius = 0.026, tube = 0.009 },
                by = { x, 0.05, 0.05 } }
end
scene {
  method = "tet",
  domain = { size = { 0.3, 0.1, 0.1 } },
  detail = { coarsest = 15, finest = 120, surface = 240 },
  frames = { count = 72, rate = 96 },
  fluid = { density = 1000,
            viscosity = function(x, y, z) return 125 * math.max(0, 1 - (x - 0.02) / 0.22) end },
  liquid = { ring(0.05), ring(0.15), ring(0.25) },
}
