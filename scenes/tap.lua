-- A tap drips: a drop grows at its mouth until it is too heavy, necks and pinches off. The mouth is
-- 5 mm wide.
local mm = 1e-3
local mouth = {12 * mm, 40 * mm, 12 * mm}

scene {
  method  = "tet",
  domain  = { size = {24 * mm, 48 * mm, 24 * mm}, open = {"bottom"} },
  detail  = { coarsest = 12, finest = 96, surface = 144 },
  frames  = { count = 100, rate = 250 },
  fluid   = { density = 1000, viscosity = 1e-3, surface_tension = 0.072 },
  solids  = {
    subtract {
      cylinder { from = {12 * mm, 40 * mm, 12 * mm}, to = {12 * mm, 60 * mm, 12 * mm}, radius = 4.5 * mm },
      cylinder { from = {12 * mm, 30 * mm, 12 * mm}, to = {12 * mm, 60 * mm, 12 * mm}, radius = 2.5 * mm },
      contact_angle = 90,
    },
  },
  sources = {
    emitter { shape = cylinder { from = {12 * mm, 42 * mm, 12 * mm}, to = {12 * mm, 46 * mm, 12 * mm}, radius = 2.5 * mm },
              velocity = {0, -0.03, 0} },
  },
  liquid  = { cylinder { from = {12 * mm, 40 * mm, 12 * mm}, to = {12 * mm, 46 * mm, 12 * mm}, radius = 2.5 * mm } },
  render  = { camera = { eye = {12 * mm, 30 * mm, 110 * mm}, target = {12 * mm, 26 * mm, 12 * mm}, fov = 26 } },
}
