local solids = {}
for i = 1, 5 do solids[#solids + 1] = sphere { center = {i / 6, .1, math.sin(i)}, radius = .05 } end
scene { domain = { size = {1, 1, 1} }, solids = solids, liquid = { subtract { box { min = {0,0,0}, max = {1,.5,1} }, solids[1] } } }
