-- A paddle turns about the middle of a round tank, a little faster each second.
local middle = {0.5, 0, 0.5}
local paddle = box { min = {0.14, 0.04, 0.47}, max = {0.86, 0.34, 0.53} }
local wall = subtract {
  box { min = {-1, -1, -1}, max = {2, 2, 2} },
  cylinder { from = {0.5, -2, 0.5}, to = {0.5, 3, 0.5}, radius = 0.48 },
}

scene {
  domain = { size = {1, 0.6, 1} },
  detail = { finest = 64 },
  frames = { count = 120 },
  liquid = { cylinder { from = {0.5, 0, 0.5}, to = {0.5, 0.3, 0.5}, radius = 0.48 } },
  solids = {
    wall,
    solid { paddle, friction = 0.3, pose = function(t)
      return { rotate = {0, 40 * t * (1 + 0.2 * t), 0}, about = middle }
    end },
  },
}
