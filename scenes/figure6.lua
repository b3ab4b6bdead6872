-- A flood runs around a U-shaped corridor, and a camera in the middle follows it: only what the
-- camera sees is fine. After figure 6 of Ando, Thuerey and Wojtan 2013.
--
-- A small variant:
--   undine run scenes/figure6.lua --set detail.finest=64 --set frames.count=60
-- To see what the camera saves:
--   undine run scenes/figure6.lua --set sizing.camera=nil
local back, front = 0.25, 0.95 -- z of the middle of the two arms

-- Along the corridor: 0 at the start of the first arm, 1 at the end of the second.
local function along(s)
  local p = { {0.4, back}, {1.75, back}, {1.75, front}, {0.4, front} }
  local ends = { 0, 0.4, 0.6, 1 }
  for i = 1, 3 do
    if s <= ends[i + 1] then
      local f = (s - ends[i]) / (ends[i + 1] - ends[i])
      return p[i][1] + f * (p[i + 1][1] - p[i][1]), p[i][2] + f * (p[i + 1][2] - p[i][2])
    end
  end
  return p[4][1], p[4][2]
end

-- The flood takes about two seconds for the way.
local function target(t)
  local x, z = along(math.min(t / 2, 1))
  return {x, 0.15, z}
end

scene {
  method = "tet",
  domain = { size = {2, 0.8, 1.2} },
  detail = { coarsest = 16, finest = 256 },
  frames = { count = 330, rate = 96 },
  liquid = { box { min = {-1, -1, -1}, max = {0.55, 0.6, 0.55} } },
  solids = { box { min = {-1, -1, 0.5}, max = {1.5, 0.8, 0.7} } }, -- between the arms
  sizing = { camera = { eye = {1, 1.1, 0.6}, target = target, fov = 45 } },
}
