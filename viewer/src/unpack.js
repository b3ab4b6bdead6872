// What un_view_pack_surface, un_view_pack_particles and un_view_pack_cut made (src/view/pack.c): base64 of deflated
// differences of quantised numbers; and cuts as the server sends them, neither deflated nor in base64.

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

class Reader {
  constructor(buffer) {
    this.bytes = new Uint8Array(buffer);
    this.view = new DataView(buffer);
    this.at = 0;
  }
  word() {
    this.at += 4;
    return this.view.getUint32(this.at - 4, true);
  }
  float() {
    this.at += 4;
    return this.view.getFloat32(this.at - 4, true);
  }
  signed() {
    let value = 0, shift = 1, byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 127) * shift;
      shift *= 128;
    } while (byte & 128);
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
  box() {
    const f = Array.from({ length: 7 }, () => this.float());
    return { lo: f.slice(0, 3), hi: f.slice(3, 6), speed: f[6] };
  }
  place(to, stride, count, box, a) {
    const lo = box.lo[a], step = (box.hi[a] - lo) / 65535;
    for (let i = 0, q = 0; i < count; i++) to[stride * i + a] = lo + step * (q += this.signed());
  }
  places(to, stride, count, box) {
    for (let a = 0; a < 3; a++) this.place(to, stride, count, box, a);
  }
}

export async function unpackSurface(text) {
  const r = new Reader(await inflate(text));
  const vertices = r.word(), triangles = r.word(), box = r.box();
  const vertex = new Float32Array(9 * vertices), index = new Uint32Array(3 * triangles);
  r.places(vertex, 9, vertices, box);
  for (let a = 0; a < 3; a++) for (let i = 0; i < vertices; i++) vertex[9 * i + 3 + a] = ((r.bytes[r.at++] << 24) >> 24) / 127;
  // the direction is not kept, only how fast
  for (let i = 0; i < vertices; i++) vertex[9 * i + 6] = (r.bytes[r.at++] / 255) * box.speed;
  for (let k = 0, v = 0; k < index.length; k++) index[k] = v += r.signed();
  return { vertices, triangles, vertex, index, bytes: vertex.byteLength + index.byteLength };
}

export async function unpackParticles(text) {
  const r = new Reader(await inflate(text));
  const count = r.word(), box = r.box(), largest = r.float();
  const position = new Float32Array(3 * count), radius = new Float32Array(count), speed = new Float32Array(count);
  r.places(position, 3, count, box);
  for (let i = 0; i < count; i++) radius[i] = largest * 2 ** (-r.bytes[r.at++] / 32);
  for (let i = 0; i < count; i++) speed[i] = (r.bytes[r.at++] / 255) * box.speed;
  return { count, position, radius, speed, bytes: 20 * count };
}

/** The polygons of a cut across an axis, as un_view_encode_cut made them. */
export function readCut(buffer, axis) {
  const r = new Reader(buffer);
  const points = r.word(), count = r.word(), corners = r.word(), box = r.box(), at = r.float();
  const size = [r.float(), r.float()], pressure = [r.float(), r.float()], level = [r.signed(), r.signed()];
  const cut = {
    axis, at, count, position: new Float32Array(3 * points), first: new Uint32Array(count + 1), corner: new Uint32Array(corners),
    level: new Int32Array(count), size: new Float32Array(count), speed: new Float32Array(count), pressure: new Float32Array(count),
    ranges: { level, size, speed: [0, box.speed], pressure }, bytes: 12 * points + 4 * corners + 20 * count,
  };
  for (let i = 0; i < points; i++) cut.position[3 * i + axis] = at;
  for (const a of [(axis + 1) % 3, (axis + 2) % 3]) r.place(cut.position, 3, points, box, a);
  for (let i = 0; i < count; i++) cut.first[i + 1] = cut.first[i] + r.bytes[r.at++];
  for (let k = 0, v = 0; k < corners; k++) cut.corner[k] = v += r.signed();
  for (let i = 0, q = 0; i < count; i++) cut.level[i] = q += r.signed();
  for (let i = 0; i < count; i++) cut.size[i] = size[1] * 2 ** (-r.bytes[r.at++] / 32);
  for (let i = 0; i < count; i++) cut.speed[i] = (r.bytes[r.at++] / 255) * box.speed;
  for (let i = 0, q = 0; i < count; i++) cut.pressure[i] = pressure[0] + ((pressure[1] - pressure[0]) * (q += r.signed())) / 1023;
  return cut;
}

export const unpackCut = async (text, axis) => readCut(await inflate(text), axis);
