-- A drop of milk falls onto a film of it and throws up a crown (We = 650, a film a third of the drop
-- deep). The first 4 ms open it, its rim throws fingers and drops until 10 ms, draws back into a ring
-- and falls. The film is at rest: the drop comes from an emitter that is on for one step. 44 mm across;
-- about 4 minutes on one core. `--set detail.finest=48 --frames 8` shows the crown in seconds.
local mm = 1e-3

scene {
  method  = "tet",
  domain  = { size = {44 * mm, 18 * mm, 44 * mm}, -- the sides mirror, as if the film went on
              slip = { left = math.huge, right = math.huge, front = math.huge, back = math.huge } },
  detail  = { coarsest = 11, finest = 144, surface = 200 },
  frames  = { count = 24, rate = 1000 },
  fluid   = { density = 1030, viscosity = 4e-3, surface_tension = 0.046 },
  liquid  = { box { min = {0, 0, 0}, max = {44 * mm, 2 * mm, 44 * mm} } },
  sources = {
    emitter { sphere { center = {22 * mm, 6 * mm, 22 * mm}, radius = 3 * mm }, velocity = {0, -2.2, 0}, to = 1e-6 },
  },
  render  = { camera = { eye = {22 * mm, 24 * mm, 64 * mm}, target = {22 * mm, 4 * mm, 22 * mm}, fov = 30 } },
}
