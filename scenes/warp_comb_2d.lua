-- A dam break runs through a comb, in two dimensions, on a grid that gathers at the surface and around the teeth
-- [Ibayashi18, as its figure 3]. Takes a few seconds.
local teeth = {}
for i = 0, 5 do teeth[#teeth + 1] = sphere { center = {0.75 + 0.11 * (i % 2), 0.04 + 0.09 * i}, radius = 0.025 } end
scene {
  method = "warp",
  domain = { size = {1.5, 0.75} },
  detail = { finest = 120 },
  frames = { count = 48, rate = 24 },
  liquid = { box { min = {0, 0}, max = {0.45, 0.5} } },
  solids = teeth,
  output = { mesh = true },
}
