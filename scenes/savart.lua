-- A jet meets a small round plate and spreads as a sheet, thinner with distance: t = d^2 / (8 r) [Savart 1833].
-- Half a cell thick at r = 0.2 m, a third at 0.3 m, a quarter at 0.4 m.
local d, speed = 0.1, 2
local turn, shift = 0, { 0, 0, 0 } -- degrees about z; m
local c, s = math.cos(math.rad(turn)), math.sin(math.rad(turn))
local function along(l) -- the point l above the plate, on the jet's axis
  return { 0.5 - s * l + shift[1], 0.5 + c * l + shift[2], 0.5 + shift[3] }
end
scene {
  method = "tet",
  domain = { size = { 1, 1, 1 }, open = { "left", "right", "bottom", "top", "front", "back" } },
  detail = { coarsest = 8, finest = 64, surface = 128 },
  frames = { count = 14, rate = 24 },
  gravity = { 0, 0, 0 },
  solids = { cylinder { from = along(-0.04), to = along(0), radius = 0.12 } },
  sources = { emitter { shape = cylinder { from = along(0.09), to = along(0.13), radius = d / 2 },
                        velocity = { s * speed, -c * speed, 0 } } },
  render = { camera = { eye = { 0.5, 1.6, 2.2 }, target = { 0.5, 0.45, 0.5 }, fov = 30 } },
}
