-- A wine glass from a mesh is filled, lifted and tipped until it is empty. Its wall is two thirds of
-- the finest cell thick. wineglass.py writes the mesh.
local x, z = 0.10, 0.09 -- where it stands, m
local grip = 0.11       -- height about which it turns

-- From 0 to 1 between two times, starting and ending at rest.
local function ease(t, from, to)
  local s = math.min(math.max((t - from) / (to - from), 0), 1)
  return s * s * s * (10 - 15 * s + 6 * s * s)
end

scene {
  method  = "tet",
  domain  = { size = {0.3, 0.24, 0.18}, open = {"top", "left", "right", "back", "front"} },
  detail  = { finest = 80 },
  frames  = { count = 75, rate = 30 },
  liquid  = {},
  solids  = {
    solid { move { mesh { file = "wineglass.obj" }, by = {x, 0, z} }, material = "glass", name = "glass",
            pose = function(t)
      return { rotate = {0, 0, -128 * ease(t, 1.1, 2.1)}, about = {x, grip, z},
               by = {0, 0.03 * ease(t, 1.0, 1.6), 0} }
    end },
  },
  sources = {
    emitter { shape = cylinder { from = {x, 0.205, z}, to = {x, 0.22, z}, radius = 0.010 },
              velocity = {0, -0.5, 0}, to = 0.8 },
  },
  render = {
    camera = { eye = {0.42, 0.25, 0.66}, target = {0.13, 0.1, 0.09}, fov = 23 },
    water  = {0.3, 0.02, 0.04},
  },
}
