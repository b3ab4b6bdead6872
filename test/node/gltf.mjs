// Khronos' own validator reads each file and must find nothing to object to; the animated one must
// show exactly one frame at each frame's time.
//   node gltf.mjs FRAMES FILE.glb...      FRAMES: how many the animation has; 0: files may be empty,
//                                         and are only to be valid
import fs from "node:fs";
import validator from "gltf-validator";

let failures = 0;
function expect(what, found, wanted) {
  if (found === wanted) return;
  failures++;
  console.log(`FAILED: ${what}: found ${found}, wanted ${wanted}`);
}

const frames = Number(process.argv[2]);
for (const file of process.argv.slice(3)) {
  const bytes = fs.readFileSync(file);
  const report = await validator.validateBytes(new Uint8Array(bytes), { maxIssues: 20 });
  expect(`${file}: errors`, report.issues.numErrors, 0);
  expect(`${file}: warnings`, report.issues.numWarnings, 0);
  for (const m of report.issues.messages) if (m.severity < 2) console.log(`  ${m.pointer}: ${m.message}`);
  if (frames === 0) continue;
  const points = /particles/.test(file);
  expect(`${file}: triangles`, report.info.totalTriangleCount > 100, true);
  const json = JSON.parse(bytes.subarray(20, 20 + bytes.readUInt32LE(12)).toString());
  const start = 28 + bytes.readUInt32LE(12);
  expect(`${file}: velocities`, json.meshes.every((m) => "_VELOCITY" in m.primitives[0].attributes), true);
  const shown0 = json.meshes.filter((m) => m.primitives[0].material === 0).map((m) => m.primitives[0]);
  expect(`${file}: points`, shown0.every((p) => (p.mode === 0) === points), true);
  if (points) expect(`${file}: colours and radii`, shown0.every((p) => "COLOR_0" in p.attributes && "_RADIUS" in p.attributes), true);
  if (points && /000[1-9]/.test(file)) {
    const v = json.bufferViews[json.accessors[shown0[0].attributes.COLOR_0].bufferView];
    const colours = new Set(Array.from({ length: v.byteLength / 4 }, (_, i) => bytes.readUInt32LE(start + v.byteOffset + 4 * i)));
    expect(`${file}: colours by speed`, colours.size > 5, true);
  }
  if (!json.animations) continue;
  const floats = (accessor) => {
    const a = json.accessors[accessor], v = json.bufferViews[a.bufferView];
    const n = a.count * { SCALAR: 1, VEC3: 3, VEC4: 4 }[a.type];
    return Array.from({ length: n }, (_, i) => bytes.readFloatLE(start + v.byteOffset + 4 * i));
  };
  const { channels, samplers } = json.animations[0];
  const shown = channels.filter((c) => c.target.path === "scale");
  expect(`${file}: frames`, shown.length, frames);
  for (let k = 0; k < frames; k++) {
    const at = (k + 0.5) / 24;
    let visible = 0;
    for (const c of shown) {
      const times = floats(samplers[c.sampler].input), scales = floats(samplers[c.sampler].output);
      let key = 0;
      while (key + 1 < times.length && times[key + 1] <= at) key++;
      visible += scales[3 * key];
    }
    expect(`${file}: visible in frame ${k}`, visible, 1);
  }
}
process.exit(failures > 0 ? 1 : 0);
