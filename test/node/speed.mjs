// Times of frames in the viewer; bench/viewer.py calls this.
//   node speed.mjs PROGRAM RUN
import { spawn } from "node:child_process";
import fs from "node:fs";
import { chromium } from "playwright-core";

const [program, run] = process.argv.slice(2);
const child = spawn(program, ["view", run, "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((resolve) => child.stdout.on("data", (text) => resolve(/http:\S+/.exec(text)[0])));
const browser = await chromium.launch({
  executablePath: ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((f) => fs.existsSync(f)),
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
await page.goto(address);
await page.waitForSelector("html[data-ready=yes]", { timeout: 120000 });
const times = await page.evaluate(async () => {
  const rows = [];
  const run = undine.runs[0];
  await new Promise((r) => setTimeout(r, 3000)); // what was fetched ahead is done
  for (let frame = 0; frame <= undine.last; frame++) {
    undine.frames.forget(run); // from disk, not from what is kept
    let start = performance.now();
    const data = await undine.frames.get(run, "surface", frame);
    const ready = performance.now() - start;
    start = performance.now();
    undine.views[0].showSurface(data);
    undine.stage.draw();
    const before = undine.stage.drawn;
    while (undine.stage.drawn === before) await new Promise((r) => setTimeout(r, 1));
    const gl = undine.stage.renderer.getContext();
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // until it is really drawn
    rows.push({ triangles: data.triangles, ready, drawn: performance.now() - start });
  }
  return rows;
});
const list = (name) => times.map((t) => t[name]).sort((a, b) => a - b);
const words = (l) => `${l[0].toFixed(0)} to ${l.at(-1).toFixed(0)} ms, ${l[l.length >> 1].toFixed(0)} ms in the middle`;
console.log(`${times[0].triangles} triangles, ${times.length} frames`);
console.log(`  file to arrays     ${words(list("ready"))}`);
console.log(`  arrays to picture  ${words(list("drawn"))} (software rendering)`);
await browser.close();
child.kill("SIGINT");
process.exit(0);
