// The viewer in a real browser: it draws, plays, cuts, charts, follows a run that goes on, shows two
// side by side, and a saved page needs no server. Chromium renders by software.
//   node view.mjs PROGRAM RUN OTHER [PICTURES]     PICTURES: folder for screenshots
import { spawn } from "node:child_process";
import fs from "node:fs";
import { chromium } from "playwright-core";

const [program, run, other, pictures] = process.argv.slice(2);
let failures = 0;
function expect(what, good, found = "") {
  if (good) return;
  failures++;
  console.log(`FAILED: ${what} ${found}`);
}

const children = [];
function view(...directories) {
  const child = spawn(program, ["view", ...directories, "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return new Promise((resolve, reject) => {
    child.stdout.on("data", (text) => resolve(/http:\S+/.exec(text)?.[0]));
    child.on("exit", () => reject(new Error("undine view has ended")));
  });
}

const browser = await chromium.launch({
  executablePath: ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((f) => fs.existsSync(f)),
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
});
async function open(address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 900, height: 560 }, ...options });
  const page = await context.newPage();
  page.on("console", (m) => m.type() !== "info" && m.type() !== "log" && !m.text().includes("willReadFrequently") && expect("no word on the console", false, m.text()));
  page.on("pageerror", (e) => expect("no errors", false, e.message));
  page.on("response", (r) => expect("answers", r.status() < 400, `${r.status()} ${r.url()}`));
  await page.goto(address);
  await page.waitForSelector("html[data-ready=yes]", { timeout: 60000 });
  return page;
}
/** A fingerprint of the picture, and how many colours it has. */
const look = (page) =>
  page.evaluate(async () => {
    undine.stage.draw();
    const before = undine.stage.drawn;
    while (undine.stage.drawn === before) await new Promise((r) => setTimeout(r, 10));
    const small = document.createElement("canvas");
    small.width = 160;
    small.height = 100;
    const g = small.getContext("2d", { willReadFrequently: true });
    g.drawImage(document.getElementById("view"), 0, 0, 160, 100);
    const pixels = g.getImageData(0, 0, 160, 100).data, colours = new Set();
    let hash = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      const c = (pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2];
      colours.add(c);
      hash = (Math.imul(hash, 31) + c) | 0;
    }
    return { hash, colours: colours.size };
  });
/** The page's policy lets no strings be run as code, so the asking is done from here. */
async function until(page, test, value, ms = 20000) {
  for (const end = Date.now() + ms; Date.now() < end; await page.waitForTimeout(20)) if (await page.evaluate(test, value)) return;
  throw new Error(`in vain: ${test}`);
}
const keep = (page, name) => pictures && page.screenshot({ path: `${pictures}/${name}.png` });

try {
  // ---- one run ----
  const address = await view(run);
  let page = await open(`${address}?theme=dark`);
  const first = await look(page);
  expect("a picture", first.colours > 200, first.colours);
  await page.evaluate(() => undine.go(2));
  const second = await look(page);
  expect("frames differ", first.hash !== second.hash);
  await keep(page, "water");

  // a solid that moves is where bodies.csv says: 0.3 m/s, two frames on
  // a solid of glass is two meshes, for its back and its front
  const moved = () => page.evaluate(() => undine.views[0].solids.map((s) => Math.round(1e6 * s.matrix.elements[12])).join());
  expect("solids move", (await moved()) === "0,25000,25000", await moved());

  // the scene's camera at the start, then the whole domain, then back
  const camera = () => page.evaluate(() => [...undine.stage.camera.position.toArray(), ...undine.stage.controls.target.toArray(), undine.stage.camera.fov].map((v) => Math.round(1e3 * v) / 1e3).join());
  const scenes = await camera();
  expect("the scene's camera", scenes === "2.2,1.2,2.4,0.5,0.3,0.5,27", scenes);
  await page.keyboard.press("r");
  expect("the whole domain", (await camera()) !== scenes, await camera());
  await page.keyboard.press("r");
  expect("the scene's camera again", (await camera()) === scenes, await camera());

  // playing
  await page.keyboard.press("Home");
  await page.keyboard.press("Space");
  const seen = new Set();
  for (const end = Date.now() + 20000; Date.now() < end && seen.size < 3; ) {
    seen.add(await page.evaluate(() => undine.shown));
    await page.waitForTimeout(50);
  }
  expect("frames go by while playing", seen.size >= 3, [...seen]);
  await page.keyboard.press("Space");
  await page.keyboard.press("End");
  await until(page, () => undine.shown === undine.last);
  await page.keyboard.press("ArrowLeft");
  await until(page, () => undine.shown === undine.last - 1);

  // scrubbing: the middle of the bar
  const bar = await page.locator("#scrub").boundingBox();
  await page.mouse.click(bar.x + bar.width / 2, bar.y + bar.height / 2);
  await until(page, () => Math.abs(undine.shown - undine.last / 2) <= 1);

  // orbiting
  const before = await look(page);
  const box = await page.locator("#view").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 + 120, box.y + box.height / 2 + 30, { steps: 4 });
  await page.mouse.up();
  await page.waitForTimeout(100);
  expect("the camera turns", before.hash !== (await look(page)).hash);
  await page.keyboard.press("r");

  // particles, by each colour
  const pictureOf = async (values) => {
    await page.evaluate(async (v) => {
      undine.set(v);
      await undine.go(undine.state.frame);
    }, values);
    return (await look(page)).hash;
  };
  const ways = [];
  for (const colour of ["speed", "size"]) ways.push(await pictureOf({ surface: "off", particles: true, colour }));
  ways.push(await pictureOf({ surface: "speed", particles: false }), await pictureOf({ surface: "clay" }));
  expect("each way to look is another picture", new Set(ways).size === ways.length, ways);

  // the cut
  const cutCells = async (onto) => {
    const counts = [];
    for (const cutAxis of [0, 1, 2]) {
      await onto.evaluate(async (v) => (undine.set(v), await undine.go(3)), { surface: "water", particles: false, cutAxis });
      await look(onto);
      counts.push(await onto.evaluate(() => undine.views[0].cellsCut));
    }
    return counts.join();
  };
  const counted = await cutCells(page);
  await pictureOf({ surface: "water", cutAxis: 2 });
  const cells = await page.evaluate(() => undine.views[0].cellsCut);
  expect("the cut meets cells", cells > 20, cells);
  const cut = await look(page);
  const place = () => page.evaluate(() => undine.views[0].current.cut.at);
  const was = await place();
  await page.keyboard.press("]");
  await until(page, (at) => undine.views[0].current.cut.at > at, was);
  expect("the cut moves", cut.hash !== (await look(page)).hash);
  // many moves of the slider end where it ends, however few of them were shown
  await page.evaluate(() => {
    const slider = document.querySelector('input[type="range"]');
    for (let i = 0; i <= 30; i++) {
      slider.value = 0.5 + 0.01 * i;
      slider.dispatchEvent(new Event("input"));
    }
  });
  await until(page, () => Math.abs(undine.views[0].current.cut.at - 0.8 * 0.9999) < 1e-6);
  await page.evaluate(() => undine.set({ cutAt: 0.5 }));
  await keep(page, "cut");
  await page.evaluate(() => undine.set({ cutAxis: -1 }));

  // charts, probes, scene
  await page.evaluate(() => undine.openTab("charts"));
  const ink = () =>
    [...document.querySelectorAll(".chart canvas")].filter((c) => c.offsetParent).map((c) => {
      const pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
      let n = 0;
      for (let i = 3; i < pixels.length; i += 4) n += pixels[i] > 0;
      return n;
    });
  await until(page, () => [...document.querySelectorAll(".chart canvas")].some((c) => c.offsetParent));
  await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
  const inked = await page.evaluate(ink);
  expect("five charts draw", inked.length === 5 && inked.every((n) => n > 500), inked);
  await keep(page, "charts");
  await page.evaluate(() => undine.openTab("probes"));
  expect("probes", (await page.locator(".chart:visible").count()) === 2);
  await page.evaluate(() => undine.openTab("scene"));
  expect("the scene's text", (await page.locator("pre:visible").textContent()).includes("scene {"));
  await page.evaluate(() => undine.openTab("about"));
  expect("what ran", (await page.locator("#pages").textContent()).includes("uniform"));

  // light, and the time a frame takes
  const dark = await look(page);
  await page.keyboard.press("t");
  expect("dark and light differ", dark.hash !== (await look(page)).hash);
  await page.close();

  // ---- live: a frame that appears ----
  const live = `${run}.live`;
  fs.cpSync(run, live, { recursive: true });
  const record = JSON.parse(fs.readFileSync(`${live}/run.json`));
  const finish = (n) => {
    record.status = "running";
    record.frames.finished = n;
    fs.writeFileSync(`${live}/run.json.tmp`, JSON.stringify(record));
    fs.renameSync(`${live}/run.json.tmp`, `${live}/run.json`);
  };
  const all = record.frames.finished, late = 3; // so many frames appear while the page is open
  const held = (n) => [`${live}/later${n}`, `${live}/frames/${String(n).padStart(4, "0")}`];
  for (let n = all - late + 1; n <= all; n++) fs.renameSync(held(n)[1], held(n)[0]);
  fs.writeFileSync(`${live}/state/lock`, `${process.pid}\n`);
  const rows = fs.readFileSync(`${live}/bodies.csv`, "utf8").trimEnd().split("\n");
  const last = rows.pop();
  fs.writeFileSync(`${live}/bodies.csv`, rows.join("\n") + "\n");
  finish(all - late);
  page = await open(await view(live));
  expect("it begins at the newest frame", (await page.evaluate(() => undine.shown)) === all - late);
  expect("it says that it is running", (await page.locator("#status").textContent()).startsWith(`running, frame ${all - late} of`));
  const took = [];
  for (let n = all - late + 1; n <= all; n++) {
    const start = Date.now();
    if (n === all) fs.appendFileSync(`${live}/bodies.csv`, last.replace(/,[^,]*/, ",3.525") + "\n"); // 3 m from where it was made
    fs.renameSync(...held(n));
    finish(n);
    await until(page, (n) => undine.shown === n, n);
    took.push(Date.now() - start);
  }
  expect("solids follow the table as it grows", (await moved()) === "0,3000000,3000000", await moved());
  // the machine may be busy with other tests: one of them is not held up
  expect("a new frame within two seconds", Math.min(...took) < 2000, `${took} ms`);
  console.log(`new frames are shown after ${took} ms`);
  await page.close();

  // ---- two runs side by side, on a phone as well ----
  const both = await view(run, other);
  page = await open(`${both}?theme=light`);
  await page.evaluate(() => undine.go(2));
  expect("two pictures", (await page.evaluate(() => undine.views.length)) === 2);
  expect("two names", (await page.locator("#labels div").count()) === 2);
  const halves = await page.evaluate(async () => {
    const before = undine.stage.drawn;
    undine.stage.draw();
    while (undine.stage.drawn === before) await new Promise((r) => setTimeout(r, 10));
    const c = document.getElementById("view"), small = document.createElement("canvas");
    small.width = 160;
    small.height = 80;
    const g = small.getContext("2d");
    g.drawImage(c, 0, 0, 160, 80);
    return [0, 80].map((x) => new Set(new Uint32Array(g.getImageData(x, 0, 80, 80).data.buffer)).size);
  });
  expect("both are drawn", halves.every((n) => n > 150), halves);
  // a cut shows squares of the grid, and of tets triangles and quadrangles
  await page.evaluate(async () => (undine.set({ cutAxis: 2, surface: "off" }), await undine.go(2)));
  const corners = await page.evaluate(() => undine.views.map(({ current: { cut } }) => [...new Set(cut.first.slice(1).map((end, i) => end - cut.first[i]))].sort().join()));
  expect("cells of either kind", corners.join(" ") === "4 3,4", corners);
  await keep(page, "both");
  // runs of different size: the camera fits all
  const outside = await page.evaluate(() => {
    const { stage } = undine, [small, large] = stage.views;
    large.size.multiplyScalar(3);
    stage.moved = false;
    stage.reset();
    stage.camera.updateProjectionMatrix();
    stage.camera.updateMatrixWorld();
    const corners = stage.views.flatMap(({ size }) => [...Array(8).keys()].map((c) => size.clone().multiply({ x: c & 1, y: (c >> 1) & 1, z: c >> 2 })));
    const far = corners.map((p) => p.project(stage.camera)).filter((p) => Math.abs(p.x) > 1 || Math.abs(p.y) > 1).length;
    large.size.copy(small.size);
    stage.reset();
    return far;
  });
  expect("the camera fits runs of different size", outside === 0, outside);
  await page.close();
  page = await open(`${both}?theme=light`, { viewport: { width: 390, height: 760 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true });
  expect("no sideways scrolling on a phone", await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.locator("#panel-toggle").tap();
  expect("the panel opens", await page.locator("#tabs").isVisible());
  await keep(page, "phone");
  await page.close();

  // ---- a saved page, from a file ----
  const saved = `${run}.html`;
  await new Promise((resolve) => spawn(program, ["view", run, "--save", saved, "--quiet"], { stdio: "inherit" }).on("exit", (code) => resolve(expect("--save", code === 0, code))));
  for (const child of children) child.kill("SIGINT");
  page = await open(`file://${saved}`);
  const from = await look(page);
  expect("a saved page draws", from.colours > 200, from.colours);
  await page.evaluate(() => undine.go(2));
  expect("and plays", from.hash !== (await look(page)).hash);
  expect("and its solids move", (await moved()) === "0,25000,25000", await moved());
  await page.evaluate(() => undine.set({ surface: "off", particles: true }));
  await until(page, () => undine.views[0].points.visible); // with particles
  const savedCells = await cutCells(page);
  expect("with the cells in the middle", savedCells === counted && Math.min(...savedCells.split(",")) > 5, `${savedCells} ${counted}`);
  await keep(page, "saved");
  await page.evaluate(() => undine.openTab("charts"));
  expect("with charts", (await page.locator(".chart:visible").count()) === 5);
  await page.close();
} catch (error) {
  expect("no exception", false, error.stack);
} finally {
  for (const child of children) child.kill("SIGINT");
  await browser.close();
}
process.exit(failures > 0 ? 1 : 0);
