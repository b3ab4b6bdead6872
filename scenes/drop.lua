-- A drop of water falls into a pool. Its crater closes, and a jet rises from it with a bead on top that
-- surface tension nearly pinches off (a Worthington jet: Fr = 160, We = 540, a pool 11 drops wide).
-- The pool is at rest: the drop comes from an emitter that is on for one step. 56 mm across, 110 ms;
-- about 10 minutes on one core. `--set detail.finest=80 --set detail.surface=120` takes one or two
-- and shows a jet without the bead.
local mm = 1e-3

scene {
  method  = "tet",
  domain  = { size = {56 * mm, 64 * mm, 56 * mm}, -- the sides mirror, as if the pool went on
              slip = { left = math.huge, right = math.huge, front = math.huge, back = math.huge } },
  detail  = { coarsest = 10, finest = 192, surface = 256 },
  frames  = { count = 55, rate = 500 },
  fluid   = { density = 1000, viscosity = 1e-3, surface_tension = 0.072 },
  liquid  = { box { min = {0, 0, 0}, max = {56 * mm, 26 * mm, 56 * mm} } },
  sources = {
    emitter { sphere { center = {28 * mm, 29.5 * mm, 28 * mm}, radius = 2.5 * mm }, velocity = {0, -2.8, 0}, to = 1e-6 },
  },
  render  = { camera = { eye = {28 * mm, 48 * mm, 150 * mm}, target = {28 * mm, 30 * mm, 28 * mm}, fov = 24 } },
}
