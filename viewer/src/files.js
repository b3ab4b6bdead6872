// Files of a run, as `undine run` writes them, to typed arrays.

const decoder = new TextDecoder("latin1");

/** surface.ply: nine floats a vertex (place, normal, velocity) kept interleaved, and triangles. */
export function readSurface(buffer) {
  const head = decoder.decode(new Uint8Array(buffer, 0, Math.min(buffer.byteLength, 2048)));
  const end = head.indexOf("end_header\n");
  const count = (name) => Number(new RegExp(`element ${name} (\\d+)`).exec(head)?.[1] ?? NaN);
  const vertices = count("vertex"), triangles = count("face");
  const body = end + 11;
  if (end < 0 || !(body + 36 * vertices + 13 * triangles <= buffer.byteLength)) throw new Error("the surface is damaged");
  const vertex = new Float32Array(buffer.slice(body, body + 36 * vertices));
  const index = new Uint32Array(3 * triangles);
  const view = new DataView(buffer, body + 36 * vertices);
  for (let t = 0, at = 1, to = 0; t < triangles; t++, at += 13) {
    index[to++] = view.getUint32(at, true);
    index[to++] = view.getUint32(at + 4, true);
    index[to++] = view.getUint32(at + 8, true);
  }
  return { vertices, triangles, vertex, index, bytes: vertex.byteLength + index.byteLength };
}

/** The arrays of a VTK XML file with raw appended data, by name. */
function readVtk(buffer) {
  const bytes = new Uint8Array(buffer);
  const head = decoder.decode(bytes.subarray(0, Math.min(bytes.length, 8192)));
  const mark = '<AppendedData encoding="raw">\n_';
  const data = head.indexOf(mark) + mark.length;
  if (data < mark.length) throw new Error("the file is damaged");
  const kinds = { Float32: Float32Array, Int32: Int32Array, UInt8: Uint8Array };
  const arrays = {};
  for (const m of head.matchAll(/<DataArray type="(\w+)" Name="(\w+)" [^>]*offset="(\d+)"/g)) {
    const Kind = kinds[m[1]], at = data + Number(m[3]);
    const length = Number(new DataView(buffer).getBigUint64(at, true));
    if (!Kind || at + 8 + length > buffer.byteLength) throw new Error("the file is cut short");
    arrays[m[2]] = new Kind(buffer.slice(at + 8, at + 8 + length));
  }
  return arrays;
}

export function readParticles(buffer) {
  const a = readVtk(buffer), n = a.Points.length / 3, v = a.velocity;
  const speed = new Float32Array(n);
  for (let i = 0; i < n; i++) speed[i] = Math.hypot(v[3 * i], v[3 * i + 1], v[3 * i + 2]);
  return { count: n, position: a.Points, radius: a.radius, speed, bytes: buffer.byteLength };
}

/** Cells as lower corner, edge length, level, pressure and speed. */
export function readCells(buffer) {
  const a = readVtk(buffer), n = a.level.length, x = a.Points, c = a.connectivity, v = a.velocity;
  const min = new Float32Array(3 * n), size = new Float32Array(n), speed = new Float32Array(n);
  const corners = n ? c.length / n : 8; // 4 of squares in 2D
  for (let i = 0; i < n; i++) {
    const p = 3 * c[corners * i], q = 3 * c[corners * i + 1];
    min[3 * i] = x[p];
    min[3 * i + 1] = x[p + 1];
    min[3 * i + 2] = x[p + 2];
    size[i] = x[q] - x[p];
    speed[i] = Math.hypot(v[3 * i], v[3 * i + 1], v[3 * i + 2]);
  }
  return { count: n, min, size, level: a.level, pressure: a.pressure, speed, bytes: buffer.byteLength };
}

export function readSolid(buffer) {
  const [vertices, triangles] = new Uint32Array(buffer, 0, 2);
  return {
    position: new Float32Array(buffer, 8, 3 * vertices),
    normal: new Float32Array(buffer, 8 + 12 * vertices, 3 * vertices),
    index: new Uint32Array(buffer, 8 + 24 * vertices, 3 * triangles),
  };
}

/** Columns by name. A last row that is cut short is left for later. */
export class Table {
  constructor() {
    this.names = [];
    this.columns = {};
    this.rows = 0;
    this.rest = "";
  }
  /** More of the file's text. */
  add(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    for (const line of lines) {
      const cells = splitLine(line);
      if (this.names.length === 0) {
        this.names = cells;
        for (const name of cells) this.columns[name] = [];
        continue;
      }
      if (cells.length < this.names.length) continue;
      this.names.forEach((name, i) => this.columns[name].push(Number(cells[i])));
      this.rows++;
    }
  }
}

function splitLine(line) {
  if (!line.includes('"')) return line.replace(/\r$/, "").split(",");
  const cells = [];
  for (const m of line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)) cells.push(m[1] === undefined ? m[2] : m[1].replaceAll('""', '"'));
  return cells;
}
