-- Two columns in opposite corners of a tank collapse together, meet in the middle and splash to
-- the ceiling: the simple set-up of figure 3 of Ando, Thuerey and Wojtan 2013. The columns would
-- have 6 million particles of the finest size; 67 thousand are enough at the start, since their
-- faces are flat.
--
-- A small variant:
--   undine run scenes/figure3.lua --set detail.finest=64 --set frames.count=60
scene {
  method = "tet",
  domain = { size = {1, 1, 1} },
  detail = { coarsest = 8, finest = 256 },
  frames = { count = 240, rate = 60 },
  budget = { particles = 1050000 }, -- what the paper's own run has at its highest
  solver = { cfl = 5 }, -- spray flies at 9 m/s; at the usual 3 it would make steps short
  liquid = {
    box { min = {-1, -1, -1}, max = {0.2, 0.56, 0.2} }, -- what lies beyond the walls is cut off
    box { min = {0.8, -1, 0.8}, max = {2, 0.56, 2} },
  },
}
