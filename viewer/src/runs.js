// Runs, from the server or from the page itself, with the frames that were looked at last kept.
import { Table, readParticles, readSolid, readSurface } from "./files.js";
import { readCut, unpackCut, unpackParticles, unpackSurface } from "./unpack.js";

const small = matchMedia("(max-width: 760px)").matches;
/** Bytes of frames that are kept. */
const KEPT = (small ? 250 : 1200) * 1e6;

/** Of a cut, whose kind is "cut/y/499950": across y, so many millionths of the domain's side from its lower end. */
const axisOf = (kind) => (kind.startsWith("cut/") ? "xyz".indexOf(kind[4]) : -1);

const block = (id) => document.getElementById(`undine-${id}`)?.textContent ?? null;

class Server {
  async runs() {
    const answer = await fetch("api/runs");
    if (!answer.ok) throw new Error(`the server says ${answer.status}`);
    return (await answer.json()).runs.map((about) => ({ about, every: 1 }));
  }
  async text(run, name, from = 0) {
    const answer = await fetch(`run/${run}/${name}${from ? `?from=${from}` : ""}`);
    return answer.ok ? answer.text() : null;
  }
  async bytes(run, name) {
    const answer = await fetch(`run/${run}/${name}`);
    return answer.ok ? answer.arrayBuffer() : null;
  }
  async frame(run, kind, frame) {
    const axis = axisOf(kind);
    const [file, read] = axis >= 0 ? [kind, (b) => readCut(b, axis)] : { surface: ["surface.ply", readSurface], particles: ["particles.vtp", readParticles] }[kind];
    const buffer = await this.bytes(run, `frames/${String(frame).padStart(4, "0")}/${file}`);
    return buffer && read(buffer);
  }
  async solid(run, k) {
    const buffer = await this.bytes(run, `solid/${k}`);
    return buffer && readSolid(buffer);
  }
}

class Saved {
  async runs() {
    return JSON.parse(block("runs")).runs.map(({ about, every, frames }) => ({ about: { ...about, live: false, frames }, every }));
  }
  async text(run, name) {
    const text = block(`${run}-${name}`);
    return text && (name === "scene.json" ? text : JSON.parse(text));
  }
  async frame(run, kind, frame) {
    const axis = axisOf(kind);
    const text = block(axis >= 0 ? `${run}-${kind.slice(0, 5)}-${frame}` : `${run}-${kind}-${frame}`); // one place is kept
    return text && (axis >= 0 ? unpackCut(text, axis) : { surface: unpackSurface, particles: unpackParticles }[kind](text));
  }
  async solid(run, k) {
    const text = block(`${run}-solid-${k}`);
    const mesh = text && (await unpackSurface(text));
    if (!mesh) return null;
    const n = mesh.vertices, position = new Float32Array(3 * n), normal = new Float32Array(3 * n);
    for (let i = 0; i < n; i++)
      for (let a = 0; a < 3; a++) {
        position[3 * i + a] = mesh.vertex[9 * i + a];
        normal[3 * i + a] = mesh.vertex[9 * i + 3 + a];
      }
    return { position, normal, index: mesh.index };
  }
}

export const saved = block("runs") !== null;
const source = saved ? new Saved() : new Server();

export class Run {
  constructor(number, about, every) {
    this.number = number;
    this.about = about;
    this.every = every;
    this.record = {};
    this.scene = { solids: [] };
    this.stats = new Table();
    this.probes = new Table();
    this.bodies = new Table();
    this.lengths = { stats: 0, probes: 0, bodies: 0 };
  }
  get name() {
    return this.about.name;
  }
  get rate() {
    return this.scene.rate || this.record.frames?.rate || 24;
  }
  /** The last frame that is complete. */
  get last() {
    const folders = this.about.frames - 1;
    const finished = this.record.frames?.finished;
    const going = this.record.status === "running" && Number.isFinite(finished);
    const last = going ? Math.min(folders, finished) : folders;
    return this.every > 1 ? last - (last % this.every) : last;
  }
  /** running, done, failed, interrupted, stopped */
  get status() {
    const said = this.record.status ?? "";
    return said === "running" && !this.about.live ? "stopped" : said;
  }
  async open() {
    this.scene = JSON.parse((await source.text(this.number, "scene.json")) ?? '{"solids":[]}');
    this.lua = await source.text(this.number, "scene.lua");
    await this.refresh(this.about, true);
  }
  /** New frames, rows and progress; true when something changed. */
  async refresh(about, first = false) {
    const old = this.about;
    this.about = about;
    let changed = first || about.live !== old.live || about.frames !== old.frames;
    if (first || about.record !== old.record) {
      try {
        this.record = JSON.parse((await source.text(this.number, "run.json")) ?? "{}");
      } catch {
        // caught between two versions; the next look will do
      }
      changed = true;
    }
    for (const name of ["stats", "probes", "bodies"]) {
      const size = about[name];
      if (size < this.lengths[name] || (first && size >= 0)) {
        this[name] = new Table();
        this.lengths[name] = 0;
      }
      if (!(size > this.lengths[name])) continue;
      const text = await source.text(this.number, `${name}.csv`, this.lengths[name]);
      if (text === null) continue;
      this.lengths[name] += text.length; // tables are ASCII but for names of probes
      if (saved) this.lengths[name] = Infinity;
      this[name].add(text);
      changed = true;
    }
    return changed;
  }
  solid(k) {
    return source.solid(this.number, k);
  }
  /** Where the k-th solid is at a frame: three rows of four numbers; null where it was made. */
  pose(k, frame) {
    const { body, centre, poses } = this.scene.solids[k];
    const time = this.bodies.columns.time ?? [];
    const at = (name) => this.bodies.columns[`${body}_${name}`]?.[row];
    // the last row that is not after the frame: a table cut short ends with what it has
    let row = 0;
    for (let hi = time.length; row < hi; ) {
      const middle = (row + hi) >> 1;
      if (time[middle] <= (frame + 1e-6) / this.rate) row = middle + 1;
      else hi = middle;
    }
    row = Math.max(0, row - 1);
    const [x, y, z, qw, qx, qy, qz] = ["x", "y", "z", "qw", "qx", "qy", "qz"].map(at);
    if (![x, y, z, qw, qx, qy, qz].every(Number.isFinite)) return poses?.[Math.min(frame, poses.length - 1)] ?? null;
    const rows = [
      [1 - 2 * (qy * qy + qz * qz), 2 * (qx * qy - qw * qz), 2 * (qx * qz + qw * qy)],
      [2 * (qx * qy + qw * qz), 1 - 2 * (qx * qx + qz * qz), 2 * (qy * qz - qw * qx)],
      [2 * (qx * qz - qw * qy), 2 * (qy * qz + qw * qx), 1 - 2 * (qx * qx + qy * qy)],
    ];
    return rows.flatMap((r, a) => [...r, [x, y, z][a] - r[0] * centre[0] - r[1] * centre[1] - r[2] * centre[2]]);
  }
}

/** Frames by run, kind and number: asked for once, kept while there is room. */
export class Frames {
  constructor() {
    this.kept = new Map();
    this.bytes = 0;
    this.timings = [];
  }
  key(run, kind, frame) {
    return `${run.number}/${kind}/${frame}`;
  }
  has(run, kind, frame) {
    return this.kept.get(this.key(run, kind, frame))?.value !== undefined;
  }
  get(run, kind, frame) {
    const key = this.key(run, kind, frame);
    let entry = this.kept.get(key);
    if (entry) {
      this.kept.delete(key); // to the end: used last
      this.kept.set(key, entry);
      return entry.promise;
    }
    entry = { value: undefined };
    const start = performance.now();
    entry.promise = source.frame(run.number, kind, frame).then(
      (value) => {
        entry.value = value;
        this.bytes += value?.bytes ?? 0;
        this.timings.push({ run: run.number, kind, frame, ms: performance.now() - start, triangles: value?.triangles ?? 0 });
        if (this.timings.length > 500) this.timings.shift();
        this.trim();
        return value;
      },
      (error) => {
        this.kept.delete(key);
        throw error;
      },
    );
    this.kept.set(key, entry);
    return entry.promise;
  }
  trim() {
    for (const [key, entry] of this.kept) {
      if (this.bytes <= KEPT || this.kept.size < 4) return;
      if (entry.value === undefined) continue;
      this.bytes -= entry.value?.bytes ?? 0;
      this.kept.delete(key);
    }
  }
  /** What was written again, as by a run that begins anew. */
  forget(run) {
    for (const [key, entry] of this.kept)
      if (key.startsWith(`${run.number}/`)) {
        this.bytes -= entry.value?.bytes ?? 0;
        this.kept.delete(key);
      }
  }
}

export async function listRuns() {
  return source.runs();
}
