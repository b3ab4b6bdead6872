// What un_view_pack_surface, un_view_pack_particles and un_view_pack_cells made (src/view/pack.c): base64 of deflated
// differences of quantised numbers.

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
  places(to, stride, count, box) {
    for (let a = 0; a < 3; a++) {
      const lo = box.lo[a], step = (box.hi[a] - lo) / 65535;
      for (let i = 0, q = 0; i < count; i++) to[stride * i + a] = lo + step * (q += this.signed());
    }
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

/** Those cells that the planes in the middle meet. */
export async function unpackCells(text) {
  const r = new Reader(await inflate(text));
  const count = r.word(), unit = r.float(), fastest = r.float(), low = r.float(), high = r.float();
  const min = new Float32Array(3 * count), size = new Float32Array(count), speed = new Float32Array(count);
  const level = new Int32Array(count), pressure = new Float32Array(count);
  for (let a = 0; a < 3; a++) for (let i = 0, q = 0; i < count; i++) min[3 * i + a] = unit * (q += r.signed());
  for (let i = 0, q = 0; i < count; i++) size[i] = unit * (q += r.signed());
  for (let i = 0, q = 0; i < count; i++) level[i] = q += r.signed();
  for (let i = 0; i < count; i++) speed[i] = (r.bytes[r.at++] / 255) * fastest;
  for (let i = 0, q = 0; i < count; i++) pressure[i] = low + ((high - low) * (q += r.signed())) / 1023;
  return { count, min, size, level, pressure, speed, bytes: 28 * count };
}
