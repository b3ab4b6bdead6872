-- All that a run has to remember: a ball, a turning paddle, an emitter, a drain, an open top.
scene {
  domain  = { size = {1, 0.8, 0.6}, open = {"top"} },
  detail  = { coarsest = 5, finest = 20 },
  frames  = { count = 12, rate = 24 },
  liquid  = { box { min = {0, 0, 0}, max = {0.35, 0.6, 0.6} },
              box { min = {0, 0, 0}, max = {1, 0.15, 0.6} } },
  solids  = {
    sphere { center = {0.6, 0.15, 0.3}, radius = 0.12, friction = 0.2 },
    solid { box { min = {0.76, 0.02, 0.1}, max = {0.84, 0.4, 0.5} }, pose = function(t)
      return { rotate = {0, 200 * t, 0}, about = {0.8, 0, 0.3} } end },
  },
  sources = {
    emitter { shape = sphere { center = {0.5, 0.65, 0.3}, radius = 0.08 }, velocity = {1, -1, 0.2} },
    drain { shape = box { min = {0.9, 0, 0}, max = {1, 0.08, 0.6} } },
  },
  probes  = { front {}, height { at = {0.2, 0.3} }, pressure { at = {0.1, 0.05, 0.3} } },
  output  = { mesh = true },
}
