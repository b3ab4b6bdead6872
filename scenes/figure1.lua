-- Two drops fall into a wide, calm basin: a large surface that needs detail in few places, after
-- figure 1 of Ando, Thuerey and Wojtan 2013. Cells from 2 m to 16 mm; 1.2 million particles at the
-- start, where 16 mm everywhere would take 400 million. In the first second a function keeps the
-- point of impact and the drops fine; after that curvature and strain find the splash.
--
-- A small variant, for a look within minutes:
--   undine run scenes/figure1.lua --set detail.finest=256 --set frames.count=48
local side, depth = 16, 0.75
local drops = {
  { x = 7.7, y = 2.0, z = 7.9, radius = 0.42 },
  { x = 8.6, y = 3.0, z = 8.4, radius = 0.26 },
}

local water = { plane { point = {0, depth, 0}, normal = {0, 1, 0} } }
for _, d in ipairs(drops) do
  table.insert(water, sphere { center = {d.x, d.y, d.z}, radius = d.radius })
end

-- Finest at the surface around the impact and at that of the drops, larger with the distance.
-- Sizes below the finest are raised to it, so this holds for any detail.
local function fine(x, y, z, t)
  if t > 1 then return nil end
  local away = math.max(math.sqrt((x - 8)^2 + (z - 8)^2) - 1.2, depth - y, 0)
  for _, d in ipairs(drops) do
    local inside = d.radius - math.sqrt((x - d.x)^2 + (y - d.y)^2 + (z - d.z)^2)
    if inside > -0.1 then away = math.min(away, math.max(inside, 0)) end
  end
  return side / 1024 + 0.3 * away
end

scene {
  method = "tet",
  domain = { size = {side, 4, side} },
  detail = { coarsest = 8, finest = 1024 },
  frames = { count = 160, rate = 60 },
  liquid = water,
  sizing = { custom = fine },
  budget = { memory = "8G" },
}
