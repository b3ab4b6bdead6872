"""Small line plots as SVG, written by hand so that nothing needs to be installed."""
import math

WIDTH, HEIGHT = 460, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 10, 28, 42
COLOURS = ["#1f6fb4", "#d9541e", "#2a9d4a", "#8a4fb0", "#b08a00", "#008f95", "#c2347b", "#5b5b5b"]


def ticks(low, high, most=6):
    """Round numbers from low to high."""
    step = 10 ** math.floor(math.log10((high - low) / most))
    for factor in (1, 2, 5, 10):
        if (high - low) / (step * factor) <= most:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def svg(title, x_label, y_label, series):
    """The text of a picture. series: dicts of name, x, y and style: line, dashed or points; colour is
    an index, None is black."""
    xs = [v for s in series for v in s["x"]]
    ys = [v for s in series for v in s["y"] if math.isfinite(v)]
    if not xs or not ys:
        return None
    x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)
    x1 = x1 if x1 > x0 else x0 + 1
    margin = 0.06 * (y1 - y0) or abs(y0) or 1
    y0, y1 = y0 - margin, y1 + margin

    def px(x):
        return LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)

    def py(y):
        return HEIGHT - BOTTOM - (y - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
           f'height="{HEIGHT}" font-family="sans-serif" font-size="11" fill="#222">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="16" font-size="12" font-weight="bold">{escape(title)}</text>']
    for x in ticks(x0, x1):
        out.append(f'<path d="M{px(x):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{px(x):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{x:g}</text>')
    for y in ticks(y0, y1):
        out.append(f'<path d="M{LEFT} {py(y):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 5}" y="{py(y) + 4:.1f}" text-anchor="end">{y:.10g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
               f'{escape(x_label)}</text>')
    out.append(f'<text transform="translate(13 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" '
               f'text-anchor="middle">{escape(y_label)}</text>')
    at = LEFT + 8
    for s in series:
        colour = "#000" if s.get("colour") is None else COLOURS[s["colour"] % len(COLOURS)]
        places = [(px(x), py(y)) for x, y in zip(s["x"], s["y"]) if math.isfinite(y)]
        if s["style"] == "points":
            out.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="none" stroke="{colour}"/>'
                       for x, y in places)
            out.append(f'<circle cx="{at + 8}" cy="{TOP + 9}" r="2.6" fill="none" stroke="{colour}"/>')
        else:
            dash = ' stroke-dasharray="5 3"' if s["style"] == "dashed" else ""
            line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
            out.append(f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="1.4"{dash}/>')
            out.append(f'<path d="M{at} {TOP + 9}h16" stroke="{colour}" stroke-width="1.4"{dash}/>')
        out.append(f'<text x="{at + 20}" y="{TOP + 13}">{escape(s["name"])}</text>')
        at += 34 + 6.2 * len(s["name"])
    return "\n".join(out + ["</svg>", ""])
