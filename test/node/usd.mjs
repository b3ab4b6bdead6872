// TinyUSDZ reads the file as a stage; counts must be those of the run's own files.
//   node usd.mjs FILE.usda VERTICES TRIANGLES SOLIDS
import fs from "node:fs";

const [file, vertices, triangles, solids] = process.argv.slice(2);
let failures = 0;
function expect(what, found, wanted) {
  if (String(found) === String(wanted)) return;
  failures++;
  console.log(`FAILED: ${file}: ${what}: found ${found}, wanted ${wanted}`);
}

// it was compiled for browsers: let it think that this is one
process.type = "renderer";
globalThis.window = globalThis;
const folder = new URL("node_modules/tinyusdz/", import.meta.url);
const { default: init } = await import(new URL("tinyusdz.js", folder));
const wasm = fs.readFileSync(new URL("tinyusdz.wasm", folder));
const said = [];
const usd = await init({
  instantiateWasm(imports, done) {
    WebAssembly.instantiate(wasm, imports).then((r) => done(r.instance, r.module));
    return {};
  },
  print() {},
  printErr: (text) => said.push(text),
});
const loader = new usd.TinyUSDZLoaderNative();
const read = loader.loadFromBinary(new Uint8Array(fs.readFileSync(file)), file);
expect("it reads", read, true);
if (!read) console.log(loader.error(), said.slice(0, 3));
else {
  expect("meshes", loader.numMeshes(), 1 + Number(solids));
  for (let i = 0; i < loader.numMeshes(); i++) {
    const mesh = loader.getMesh(i);
    if (mesh.primName !== "surface") continue;
    expect("points", mesh.points.length / 3, vertices);
    expect("corners", mesh.faceVertexIndices.length, 3 * triangles);
    expect("normals", mesh.normals.length > 0, true);
  }
  const root = loader.getDefaultRootNode();
  expect("default prim", root.primName, file.replace(/.*\//, "").replace(".usda", ""));
}
process.exit(failures > 0 ? 1 : 0);
