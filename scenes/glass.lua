-- A wine glass is filled, lifted and tipped until it is empty.
local x, z = 0.11, 0.09            -- where it stands, m
local centre, inner = 0.118, 0.042 -- of the bowl: height above the floor, radius
local wall, rim = 0.0045, 0.144    -- thickness, 1.2 of the finest cells; height of the rim
local outer = inner + wall

local bowl = subtract {
  sphere { center = {x, centre, z}, radius = outer },
  sphere { center = {x, centre, z}, radius = inner },
  box { min = {x - 1, rim, z - 1}, max = {x + 1, rim + 1, z + 1} },
}
local stem = union {
  cylinder { from = {x, 0.004, z}, to = {x, centre - inner - 0.5 * wall, z}, radius = 0.006 },
  sphere { center = {x, centre - outer - 0.003, z}, radius = 0.010 },
}
local foot = intersect { -- the cap of a large sphere
  sphere { center = {x, 0.010 - 0.09, z}, radius = 0.09 },
  cylinder { from = {x, 0, z}, to = {x, 0.02, z}, radius = 0.038 },
}

-- From 0 to 1 between two times, starting and ending at rest.
local function ease(t, from, to)
  local s = math.min(math.max((t - from) / (to - from), 0), 1)
  return s * s * s * (10 - 15 * s + 6 * s * s)
end

scene {
  method  = "tet",
  domain  = { size = {0.3, 0.23, 0.18}, open = {"top", "left", "right", "back", "front"} },
  detail  = { finest = 80 },
  frames  = { count = 72, rate = 30 },
  liquid  = {},
  solids  = {
    solid { union { bowl, stem, foot }, material = "glass", name = "glass", pose = function(t)
      return { rotate = {0, 0, -125 * ease(t, 1.1, 2.0)}, about = {x, centre, z},
               by = {0, 0.03 * ease(t, 1.0, 1.6), 0} }
    end },
  },
  sources = {
    emitter { shape = cylinder { from = {x, 0.195, z}, to = {x, 0.21, z}, radius = 0.011 },
              velocity = {0, -0.5, 0}, to = 0.75 },
  },
  render = {
    camera = { eye = {0.42, 0.25, 0.62}, target = {0.135, 0.1, 0.09}, fov = 23 },
    water  = {0.3, 0.02, 0.04},
  },
}
