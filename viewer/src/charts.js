// Charts of tables over time, drawn by hand on small canvases: lines of several runs, or stacked
// areas of one. A click goes to that time.

export function number(x, digits = 3) {
  if (!Number.isFinite(x)) return "–";
  const a = Math.abs(x);
  if (a !== 0 && (a >= 1e6 || a < 1e-3)) return x.toExponential(Math.min(digits - 1, 2)).replace("e+", "e");
  if (a >= 1000) return Math.round(x).toLocaleString("en");
  return String(Number(x.toPrecision(digits)));
}

/** For axes: 120k, 3.5M. */
function short(x) {
  const a = Math.abs(x);
  return a >= 1e6 ? `${Number((x / 1e6).toPrecision(3))}M` : a >= 1e4 ? `${Number((x / 1e3).toPrecision(4))}k` : number(x);
}

function ticks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const list = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) list.push(k * step);
  return list;
}

/** As many points as there are pixels: of each bin the first, lowest and highest. */
function thin(x, y, bins) {
  if (x.length <= 3 * bins) return [x, y];
  const tx = [], ty = [], each = x.length / bins;
  for (let b = 0; b < bins; b++) {
    const from = Math.floor(b * each), to = Math.min(Math.floor((b + 1) * each), x.length);
    let low = from, high = from;
    for (let i = from; i < to; i++) {
      if (y[i] < y[low]) low = i;
      if (y[i] > y[high]) high = i;
    }
    for (const i of [from, Math.min(low, high), Math.max(low, high)]) {
      tx.push(x[i]);
      ty.push(y[i]);
    }
  }
  return [tx, ty];
}

export class Chart {
  /** lines: () => [{ name, colour, x, y }]; stacked: areas on top of each other */
  constructor(title, unit, lines, { stacked = false, zero = false, onTime } = {}) {
    Object.assign(this, { title, unit, lines, stacked, zero });
    this.element = document.createElement("figure");
    this.element.className = "chart";
    const caption = document.createElement("figcaption");
    caption.append(Object.assign(document.createElement("b"), { textContent: title }), (this.value = document.createElement("span")));
    this.canvas = document.createElement("canvas");
    this.keys = Object.assign(document.createElement("div"), { className: "keys" });
    this.element.append(caption, this.canvas, this.keys);
    this.canvas.addEventListener("pointermove", (e) => this.point(e.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (e) => onTime?.(this.timeAt(e.offsetX)));
  }

  point(x) {
    this.pointed = x;
    this.paint(this.time, this.theme);
  }

  timeAt(x) {
    return this.span ? this.span[0] + ((x - this.left) / (this.right - this.left)) * (this.span[1] - this.span[0]) : 0;
  }

  paint(time, theme) {
    this.time = time;
    this.theme = theme;
    const lines = this.lines().filter((l) => l.x?.length);
    const ratio = Math.min(devicePixelRatio, 2), W = this.canvas.clientWidth, H = this.canvas.clientHeight;
    if (!W) return;
    this.canvas.width = W * ratio;
    this.canvas.height = H * ratio;
    const g = this.canvas.getContext("2d"), css = getComputedStyle(document.documentElement);
    const soft = css.getPropertyValue("--soft"), line = css.getPropertyValue("--line"), text = css.getPropertyValue("--text");
    g.scale(ratio, ratio);
    g.font = "11px system-ui, sans-serif";
    this.left = 46;
    this.right = W - 6;
    const top = 6, bottom = H - 18;
    this.keys.replaceChildren(
      ...(lines.length > 1 ? lines.map((l) => {
        const key = document.createElement("span"), dot = document.createElement("i");
        dot.style.background = l.colour;
        key.append(dot, l.name);
        return key;
      }) : []),
    );
    if (!lines.length) {
      g.fillStyle = soft;
      g.fillText("nothing yet", this.left, H / 2);
      return;
    }
    const shapes = lines.map((l) => ({ ...l }));
    if (this.stacked) {
      const base = new Float64Array(shapes[0].y.length);
      for (const s of shapes) {
        s.base = Float64Array.from(base);
        s.y.forEach((v, i) => (base[i] += Number.isFinite(v) ? v : 0));
        s.top = Float64Array.from(base);
      }
    }
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (const s of shapes) {
      x0 = Math.min(x0, s.x[0]);
      x1 = Math.max(x1, s.x[s.x.length - 1]);
      for (const v of s.top ?? s.y) if (Number.isFinite(v)) (y0 = Math.min(y0, v)), (y1 = Math.max(y1, v));
    }
    if (this.stacked || this.zero) y0 = Math.min(y0, 0), (y1 = Math.max(y1, 0));
    if (!(y1 > y0)) (y0 = Number.isFinite(y0) ? y0 - Math.abs(y0 || 1) * 0.1 : 0), (y1 = y0 + Math.abs(y0 || 1) * 0.2);
    if (!(x1 > x0)) x1 = x0 + 1;
    const room = this.stacked ? 0.03 : 0.06;
    y1 += room * (y1 - y0);
    if (!this.stacked) y0 -= room * (y1 - y0);
    this.span = [x0, x1];
    const X = (v) => this.left + ((v - x0) / (x1 - x0)) * (this.right - this.left);
    const Y = (v) => bottom - ((v - y0) / (y1 - y0)) * (bottom - top);
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const v of ticks(y0, y1, 3)) {
      g.strokeStyle = line;
      g.beginPath();
      g.moveTo(this.left, Math.round(Y(v)) + 0.5);
      g.lineTo(this.right, Math.round(Y(v)) + 0.5);
      g.stroke();
      g.fillStyle = soft;
      g.fillText(short(v), this.left - 6, Y(v));
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const v of ticks(x0, x1, W > 260 ? 5 : 3)) if (X(v) < this.right - 22) g.fillText(number(v), X(v), bottom + 5);
    g.textAlign = "right";
    g.fillText("s", this.right, bottom + 5);
    for (const s of this.stacked ? shapes.toReversed() : shapes) {
      g.beginPath();
      if (this.stacked) {
        s.x.forEach((v, i) => g.lineTo(X(v), Y(s.top[i])));
        for (let i = s.x.length - 1; i >= 0; i--) g.lineTo(X(s.x[i]), Y(s.base[i]));
        g.fillStyle = s.colour;
        g.globalAlpha = 0.85;
        g.fill();
        g.globalAlpha = 1;
        continue;
      }
      const [tx, ty] = thin(s.x, s.y, this.right - this.left);
      let pen = false;
      tx.forEach((v, i) => {
        if (!Number.isFinite(ty[i])) return (pen = false);
        pen ? g.lineTo(X(v), Y(ty[i])) : g.moveTo(X(v), Y(ty[i]));
        pen = true;
      });
      g.strokeStyle = s.colour;
      g.lineWidth = 1.6;
      g.lineJoin = "round";
      g.stroke();
      g.lineWidth = 1;
    }
    const at = this.pointed === undefined || this.pointed === null ? time : this.timeAt(this.pointed);
    if (at >= x0 && at <= x1) {
      g.strokeStyle = text;
      g.globalAlpha = 0.6;
      g.beginPath();
      g.moveTo(Math.round(X(at)) + 0.5, top);
      g.lineTo(Math.round(X(at)) + 0.5, bottom);
      g.stroke();
      g.globalAlpha = 1;
    }
    const near = (s) => {
      let lo = 0, hi = s.x.length - 1;
      while (lo < hi) {
        const mid = (lo + hi + 1) >> 1;
        s.x[mid] <= at + 1e-9 ? (lo = mid) : (hi = mid - 1);
      }
      return s.y[lo];
    };
    const shown = this.stacked ? [shapes.reduce((sum, s) => sum + (near(s) || 0), 0)] : shapes.map(near);
    this.value.textContent = `${shown.slice(0, 3).map((v) => number(v)).join(" / ")} ${this.unit}`;
  }
}
