-- Three beads of the same size on three plates: water on glass, on acrylic and on a lotus leaf.
local mm = 1e-3
local angles = {40, 80, 145}
local plates, beads = {}, {}
for i, angle in ipairs(angles) do
  local x = (12 * i - 6) * mm
  plates[i] = box { min = {x - 6 * mm, -4 * mm, -1 * mm}, max = {x + 6 * mm, 2 * mm, 13 * mm}, contact_angle = angle }
  beads[i] = sphere { center = {x, 2 * mm, 6 * mm}, radius = 2.6 * mm }
end

scene {
  method = "tet",
  domain = { size = {36 * mm, 12 * mm, 12 * mm} },
  detail = { coarsest = 12, finest = 96, surface = 180 },
  frames = { count = 60, rate = 250 },
  fluid  = { density = 1000, viscosity = 0.02, surface_tension = 0.072 },
  liquid = beads,
  solids = plates,
  render = { camera = { eye = {18 * mm, 10 * mm, 75 * mm}, target = {18 * mm, 4 * mm, 6 * mm}, fov = 24 } },
}
