"""Ordinary scenes, made up at random: tanks, dams and drops, with pillars, cups, plates, ramps and
paddles in them, streams and drains, 1 cm to 10 m long. The same number gives the same scene."""
import math
import random

GRAVITY = 9.81
CELLS = 14, 16, 20, 24


def triple(*values):
    return "{" + ", ".join(f"{value:.4g}" for value in values) + "}"


def box(low, high):
    return f"box {{ min = {triple(*low)}, max = {triple(*high)} }}"


def upright(x, z, bottom, top, radius):
    return f"cylinder {{ from = {triple(x, bottom, z)}, to = {triple(x, top, z)}, radius = {radius:.4g} }}"


def solid(dice, size, length, h):
    """A solid's text, and its greatest speed."""
    x, y, z = (dice.uniform(0.2, 0.8) * side for side in size)
    reach, height = dice.uniform(0.06, 0.2) * length, size[1]
    kind = dice.choice(["ball", "box", "pillar", "turned", "cup", "plate", "ramp", "ring"])
    if kind == "ball":
        text = f"sphere {{ center = {triple(x, y, z)}, radius = {reach:.4g} }}"
    elif kind == "box":
        text = box((x - reach, y - reach, z - reach), (x + reach, y + reach, z + reach))
    elif kind == "pillar":
        text = upright(x, z, 0, height * dice.uniform(0.3, 1), 0.6 * reach)
    elif kind == "turned":
        angles = triple(*(dice.uniform(0, 90) for _ in size))
        text = f"move {{ {box((-reach, -0.6 * reach, -reach), (reach, 0.6 * reach, reach))}, rotate = {angles}, " \
               f"by = {triple(x, y, z)} }}"
    elif kind == "cup":
        wall = h * dice.uniform(1, 2.5)
        radius, floor = max(reach, 3 * h + wall), 0.02 * height
        text = f"subtract {{ {upright(x, z, floor, 0.5 * height, radius)}, " \
               f"{upright(x, z, floor + wall, 0.6 * height, radius - wall)} }}"
    elif kind == "plate":
        half = h * dice.uniform(0.5, 1)
        text = f"move {{ {box((-half, -0.4 * height, -2 * size[2]), (half, 0.4 * height, 2 * size[2]))}, " \
               f"rotate = {triple(0, dice.uniform(-30, 30), dice.uniform(-60, 60))}, by = {triple(x, y, z)} }}"
    elif kind == "ramp":
        normal = triple(dice.uniform(-1, 1), 1, dice.uniform(-0.5, 0.5))
        text = f"plane {{ point = {triple(x, 0.1 * height, 0)}, normal = {normal} }}"
    else:
        axis = triple(dice.uniform(-1, 1), 1, dice.uniform(-1, 1))
        text = f"torus {{ center = {triple(x, y, z)}, axis = {axis}, radius = {reach:.4g}, tube = {0.4 * reach:.4g} }}"
    if kind in ("ball", "box", "turned", "ring") and dice.random() < 0.25:
        second = math.sqrt(length)
        pace, way, turn = 2 * math.pi / (dice.uniform(0.5, 1.5) * second), 0.15 * length, 60 / second
        return (f"solid {{ {text}, pose = function(t) return {{ by = {{{way:.4g} * math.sin({pace:.4g} * t), 0, 0}}, "
                f"rotate = {{0, {turn:.4g} * t, 0}}, about = {triple(x, y, z)} }} end }}",
                pace * way + math.radians(turn) * length)
    if dice.random() < 0.2:
        text = f"solid {{ {text}, friction = {dice.uniform(0, 1):.2g} }}"
    return text, 0


def scene(number):
    """The scene's text; a speed that liquid in it can hardly exceed; whether it should stand still; sqrt(g L)."""
    dice = random.Random(number)
    length = dice.choice([0.01, 0.2, 1, 1, 1, 10])
    size = [1, dice.choice([0.5, 0.8, 1, 1.3]), dice.choice([0.3, 0.5, 0.77, 1])]
    size = [side / max(size) * length for side in size]
    cells = dice.choice(CELLS)
    x, y, z = size
    h = length / cells
    squared = 2 * GRAVITY * y
    start = dice.choice(["dam", "pool", "drop", "pool"])
    if start == "dam":
        liquid = [box((0, 0, 0), (dice.uniform(0.2, 0.6) * x, dice.uniform(0.4, 0.9) * y, z))]
    elif start == "pool":
        liquid = [box((0, 0, 0), (x, dice.uniform(0.15, 0.6) * y, z))]
    else:
        at = triple(dice.uniform(0.3, 0.7) * x, dice.uniform(0.4, 0.8) * y, 0.5 * z)
        liquid = [f"sphere {{ center = {at}, radius = {dice.uniform(0.12, 0.25) * min(size):.4g} }}",
                  box((0, 0, 0), (x, 0.2 * y, z))]
    solids = [solid(dice, size, length, h) for _ in range(dice.choice([0, 1, 1, 2, 3]))]
    pushed = max([speed for _, speed in solids], default=0)
    still = start == "pool" and pushed == 0
    sources, gravity = [], (0, -GRAVITY, 0)
    if dice.random() < 0.3:
        speed, way = dice.uniform(0.3, 1) * math.sqrt(GRAVITY * y), dice.choice([(0, -1, 0), (1, -0.3, 0), (0, -0.2, 1)])
        sources.append(f"emitter {{ sphere {{ center = {triple(0.5 * x, 0.8 * y, 0.5 * z)}, "
                       f"radius = {max(0.06 * length, 1.5 * h):.4g} }}, velocity = {triple(*(speed * w for w in way))}, "
                       f"to = {0.4 * math.sqrt(length):.4g} }}")
        squared += speed * speed
        still = False
    if dice.random() < 0.12:
        sources.append(f"drain {{ {box((0.4 * x, -1, 0.4 * z), (0.6 * x, 1.5 * h, 0.6 * z))} }}")
        still = False
    sides = [dice.choice(["left", "right", "top", "front"])] if dice.random() < 0.15 else []
    still = still and sides in ([], ["top"])
    if dice.random() < 0.15:
        gravity = GRAVITY * dice.uniform(-0.4, 0.4), -GRAVITY, GRAVITY * dice.uniform(-0.3, 0.3)
        squared *= 1.5
        still = False
    text = f"""scene {{ domain = {{ size = {triple(*size)}, open = {{ {", ".join(f"'{side}'" for side in sides)} }} }},
  detail = {{ finest = {cells}, coarsest = {dice.choice([4, 7, 8])} }},
  frames = {{ count = 24, rate = {20 / math.sqrt(length):.5g} }}, gravity = {triple(*gravity)},
  liquid = {{ {", ".join(liquid)} }},
  solids = {{ {", ".join(text for text, _ in solids)} }},
  sources = {{ {", ".join(sources)} }}, output = {{ surface = false }} }}
"""
    return text, 2 * (pushed + math.sqrt(squared)), still, math.sqrt(GRAVITY * length)


def flat(number):
    """The same in two dimensions."""
    dice = random.Random(number)
    length = dice.choice([0.01, 0.2, 1, 1, 1, 10])
    x, y = length, dice.choice([0.5, 0.8, 1]) * length
    cells = dice.choice([24, 32, 40, 48])
    h, squared = length / cells, 2 * GRAVITY * y
    start = dice.choice(["dam", "pool", "drop", "pool"])
    if start == "dam":
        liquid = [box((0, 0), (dice.uniform(0.2, 0.6) * x, dice.uniform(0.4, 0.9) * y))]
    elif start == "pool":
        liquid = [box((0, 0), (x, dice.uniform(0.15, 0.6) * y))]
    else:
        at = triple(dice.uniform(0.3, 0.7) * x, dice.uniform(0.5, 0.8) * y)
        liquid = [f"sphere {{ center = {at}, radius = {dice.uniform(0.1, 0.18) * y:.4g} }}", box((0, 0), (x, 0.2 * y))]
    solids, pushed = [], 0
    for _ in range(dice.choice([0, 1, 1, 2, 3])):
        at, reach = (dice.uniform(0.2, 0.8) * x, dice.uniform(0.2, 0.8) * y), dice.uniform(0.06, 0.15) * y
        kind = dice.choice(["ball", "box", "turned", "plate", "ramp"])
        if kind == "ball":
            text = f"sphere {{ center = {triple(*at)}, radius = {reach:.4g} }}"
        elif kind == "box":
            text = box([a - reach for a in at], [a + reach for a in at])
        elif kind == "ramp":
            text = f"plane {{ point = {triple(at[0], 0.1 * y)}, normal = {triple(dice.uniform(-1, 1), 1)} }}"
        else:
            half = (reach, 0.6 * reach) if kind == "turned" else (h * dice.uniform(0.5, 1), 2 * reach)
            text = f"move {{ {box([-a for a in half], half)}, rotate = {triple(0, 0, dice.uniform(-60, 60))}, by = {triple(*at)} }}"
        if kind in ("ball", "box") and dice.random() < 0.25:
            pace, way = 2 * math.pi / (dice.uniform(0.5, 1.5) * math.sqrt(length)), 0.15 * length
            text = f"solid {{ {text}, pose = function(t) return {{ by = {{{way:.4g} * math.sin({pace:.4g} * t), 0}} }} end }}"
            pushed = max(pushed, pace * way)
        solids.append(text)
    still = start == "pool" and pushed == 0
    sources = []
    if dice.random() < 0.3:
        speed = dice.uniform(0.3, 1) * math.sqrt(GRAVITY * y)
        sources.append(f"emitter {{ sphere {{ center = {triple(0.5 * x, 0.8 * y)}, radius = {0.06 * length:.4g} }}, "
                       f"velocity = {triple(0.3 * speed, -speed)}, to = {0.4 * math.sqrt(length):.4g} }}")
        squared += speed * speed
        still = False
    text = f"""scene {{ domain = {{ size = {triple(x, y)} }},
  detail = {{ finest = {cells}, coarsest = {dice.choice([4, 7, 8])} }},
  frames = {{ count = 24, rate = {20 / math.sqrt(length):.5g} }},
  liquid = {{ {", ".join(liquid)} }}, solids = {{ {", ".join(solids)} }},
  sources = {{ {", ".join(sources)} }}, output = {{ surface = false }} }}
"""
    return text, 2 * (pushed + math.sqrt(squared)), still, math.sqrt(GRAVITY * length)
