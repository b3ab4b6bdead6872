// The viewer: what is shown, when, and how one steers it.
import { Chart, number } from "./charts.js";
import { levelsCss, rampCss, runColour, stageColour } from "./colours.js";
import { Frames, Run, listRuns, saved } from "./runs.js";
import { Stage } from "./stage.js";

const $ = (id) => document.getElementById(id);
const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
/** How often the server is asked for news, ms. */
const LOOK_EVERY = 700;
/** Frames fetched ahead. */
const AHEAD = 4;

const ICONS = {
  play: "M7 4.5v15l13-7.5z", pause: "M6 4.5h4.5v15H6zM13.5 4.5H18v15h-4.5z", back: "M18 5v14L8.5 12zM6 5h2v14H6z", forward: "M6 5v14l9.500-7zM16 5h2v14h-2z",
  loop: "M7 7h10v3l4-4-4-4v3H5v6h2zM17 17H7v-3l-4 4 4 4v-3h12v-6h-2z", panel: "M4 5h16v2H4zM4 11h16v2H4zM4 17h16v2H4z",
  dark: "M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9z", light: "M12 7a5 5 0 1 1 0 10 5 5 0 0 1 0-10zM11 1h2v4h-2zM11 19h2v4h-2zM1 11h4v2H1zM19 11h4v2h-4z",
};
function icon(button, name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  button.replaceChildren(svg);
}

const remembered = (() => {
  try {
    return JSON.parse(localStorage.getItem("undine") ?? "{}");
  } catch {
    return {};
  }
})();
function remember(values) {
  Object.assign(remembered, values);
  try {
    localStorage.setItem("undine", JSON.stringify(remembered));
  } catch {
    // a page from a file may keep nothing
  }
}

const asked = new URLSearchParams(location.search);
const state = {
  frame: 0, playing: false, speed: 1, loop: true, follow: false, theme: asked.get("theme") ?? remembered.theme ?? (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark"),
  surface: "water", particles: false, colour: "speed", cutAxis: -1, cutAt: 0.5, cutBy: "level", tab: "look",
};
const frames = new Frames();
let runs = [], views = [], stage, charts = [], probeCharts = [], shown = -1, showing = null;

// ---- time ----

/** Runs are matched by time; frames are those of the first. */
const rate = () => runs[0]?.rate ?? 24;
const last = () => Math.max(0, ...runs.map((r) => Math.floor((r.last / r.rate) * rate() + 1e-6)));
const step = () => runs[0]?.every ?? 1;
function frameOf(run, frame) {
  const own = Math.min(Math.round((frame / rate()) * run.rate), run.last);
  return Math.max(own - (own % run.every), 0);
}
const time = () => state.frame / rate();

function wanted(run, frame) {
  const list = [];
  const own = frameOf(run, frame);
  if (state.surface !== "off" && run.about.surface) list.push(["surface", own]);
  if ((state.particles || needsSlab(run)) && run.about.particles) list.push(["particles", own]);
  if (state.cutAxis >= 0 && run.about.cells) list.push([cutKind(), own]);
  return list;
}
/** The cut as a kind of frame; a little below the place that is shown, where no faces of cells are. */
const cutKind = () => `cut/${"xyz"[state.cutAxis]}/${Math.round(999900 * state.cutAt)}`;
/** A saved page has the cells of one place. */
const fixedCut = () => saved && runs.some((r) => r.about.cells);
/** Without cells a cut shows the particles there. */
const needsSlab = (run) => state.cutAxis >= 0 && !run.about.cells;

// ---- showing a frame ----

let request = 0;
async function show(frame) {
  const mine = ++request;
  state.frame = frame;
  updateBar();
  const slow = setTimeout(() => ($("loading").hidden = false), 150), cutAt = state.cutAt;
  try {
    const parts = await Promise.all(
      runs.map(async (run) => Object.fromEntries(await Promise.all(wanted(run, frame).map(async ([kind, own]) => [kind.split("/")[0], await frames.get(run, kind, own)])))),
    );
    if (mine !== request) return false; // something newer is wanted
    parts.forEach((data, k) => place(views[k], data, frame));
    shown = frame;
    legend();
    stage.draw();
    updateCharts();
    say("");
    if (state.cutAt !== cutAt) slide();
  } catch (error) {
    if (mine === request) say(`Frame ${frame} cannot be shown: ${error.message}`);
    return false;
  } finally {
    clearTimeout(slow);
    if (mine === request) $("loading").hidden = true;
  }
  prefetch(frame);
  return true;
}

let sliding = false, slidAgain = false;
/** The cut has moved. Its polygons are asked for one place after the other, the latest next, so that it moves as fast as they come. */
async function slide() {
  slidAgain = true;
  if (sliding) return;
  sliding = true;
  try {
    while (slidAgain && state.cutAxis >= 0) {
      const frame = state.frame, kind = cutKind();
      slidAgain = false;
      const cuts = await Promise.all(runs.map((run) => (run.about.cells ? frames.get(run, kind, frameOf(run, frame)) : null)));
      if (state.frame !== frame) slidAgain = true;
      else views.forEach((view, k) => (Object.assign(view.current ?? {}, cuts[k] && { cut: cuts[k] }), cut(view)));
      legend();
      stage.draw();
    }
  } catch (error) {
    say(`The cut cannot be shown: ${error.message}`);
  } finally {
    sliding = false;
  }
}

function prefetch(frame) {
  for (let k = 1; k <= AHEAD; k++) {
    let next = frame + k * step();
    if (next > last()) next = state.loop && state.playing ? next - last() - step() : -1;
    if (next < 0) continue;
    for (const run of runs) for (const [kind, own] of wanted(run, next)) frames.get(run, kind, own).catch(() => {});
  }
}

const ranges = new Map();
/** The range of a value over all frames seen: colours keep their meaning from frame to frame. */
function range(name, values) {
  const r = ranges.get(name) ?? [Infinity, -Infinity];
  for (const v of values ?? []) {
    if (v < r[0]) r[0] = v;
    if (v > r[1]) r[1] = v;
  }
  ranges.set(name, r);
  return r[0] <= r[1] ? r : [0, 1];
}

function place(view, data, frame) {
  const run = view.run;
  view.pose(frameOf(run, frame));
  view.current = data;
  if (data.surface !== undefined) view.showSurface(data.surface);
  view.surface.visible = state.surface !== "off";
  const fastest = Math.max(...runs.map((r) => Math.max(0.1, maximum(r.stats.columns.max_speed))));
  view.waterUniforms.uFastest.value = state.surface === "speed" ? 0.75 * fastest : 1;
  stage.uniforms.uStyle.value = { water: 0, clay: 1, speed: 2, off: 0 }[state.surface];
  const slab = needsSlab(run);
  const particles = state.particles || slab ? data.particles : null;
  if (particles) {
    const by = slab && !state.particles ? "size" : state.colour;
    let values = particles.speed;
    if (by === "size") values = particles.radius;
    if (by === "level") {
      const smallest = range("radius", particles.radius)[0];
      values = particles.radius.map((r) => Math.round(Math.log2(r / smallest)));
    }
    const span = by === "speed" ? [0, 0.75 * fastest] : range(by === "size" ? "radius" : "level", values);
    view.showParticles(particles, values, span);
    view.particleSpan = [by, span];
  } else {
    view.showParticles(null, null, [0, 1]);
  }
  view.pointUniforms.uSlabOn.value = slab ? 1 : 0;
  cut(view);
}

function cut(view) {
  const axis = state.cutAxis;
  if (axis < 0) return view.cutAt(-1);
  const polygons = view.current?.cut?.axis === axis ? view.current.cut : null;
  view.cutAt(axis, polygons ? polygons.at : state.cutAt * view.size.getComponent(axis) * 0.9999, 1);
  if (!polygons) return (view.cut.visible = false);
  const span = range(`cells ${state.cutBy}`, polygons.ranges[state.cutBy]);
  view.cellSpan = [state.cutBy, span];
  view.cellsCut = view.showCells(polygons, state.cutBy, span);
}

const maximum = (list) => (list ?? []).reduce((a, b) => (b > a ? b : a), 0);

function legend() {
  const element = $("legend"), view = views[0];
  const entry = state.cutAxis >= 0 && view?.cut.visible ? view.cellSpan : view?.points.visible ? view.particleSpan : state.surface === "speed" && view ? ["speed", [0, view.waterUniforms.uFastest.value]] : null;
  element.hidden = !entry;
  if (!entry) return;
  const [by, [low, high]] = entry;
  const words = { speed: ["Speed", "m/s"], size: ["Size", "m"], level: ["Level", ""], pressure: ["Pressure", "Pa"] }[by];
  const [bar, ends] = element.children;
  bar.style.background = by === "level" && state.cutAxis >= 0 && view.cut.visible ? levelsCss : rampCss;
  ends.children[0].textContent = number(low);
  ends.children[1].textContent = words[0];
  ends.children[2].textContent = `${number(high)} ${words[1]}`;
}

function say(text) {
  $("toast").hidden = !text;
  $("toast").textContent = text;
}

// ---- playing ----

let clockStart = 0, frameStart = 0;
function play(on = !state.playing) {
  if (on === state.playing) return;
  if (on && state.frame >= last()) show(0);
  state.playing = on;
  icon($("play"), on ? "pause" : "play");
  $("play").setAttribute("aria-label", on ? "Pause" : "Play");
  if (!on) return;
  clockStart = performance.now();
  frameStart = state.frame;
  requestAnimationFrame(advance);
}

let busy = false;
async function advance() {
  if (!state.playing) return;
  requestAnimationFrame(advance);
  if (busy) return;
  const due = frameStart + ((performance.now() - clockStart) / 1000) * rate() * state.speed;
  let next = Math.floor(due / step()) * step();
  if (next <= state.frame && shown === state.frame) return;
  busy = true;
  // no faster than frames arrive: the clock waits, so that every frame is seen
  next = Math.min(next, state.frame + Math.max(step(), Math.round(state.speed) * step()));
  if (next > last()) {
    if (!state.loop || (runs.some((r) => r.about.live) && state.follow)) {
      play(false);
      next = last();
    } else next = 0;
  }
  const behind = due - next > 1.5 * step() * Math.max(1, state.speed) || next < state.frame;
  await show(next);
  if (behind) {
    clockStart = performance.now();
    frameStart = state.frame;
  }
  busy = false;
}

function go(frame) {
  state.follow = frame >= last() && runs.some((r) => r.about.live);
  const f = Math.min(Math.max(Math.round(frame / step()) * step(), 0), last());
  clockStart = performance.now();
  frameStart = f;
  return show(f);
}

function updateBar() {
  const end = last(), part = end ? state.frame / end : 0;
  $("scrub").querySelector(".filled").style.width = `${100 * part}%`;
  $("scrub").querySelector(".knob").style.left = `${100 * part}%`;
  $("scrub").setAttribute("aria-valuemax", end);
  $("scrub").setAttribute("aria-valuenow", state.frame);
  const wide = innerWidth > 760;
  $("clock").replaceChildren(make("b", { textContent: `${time().toFixed(2)} s` }), wide ? ` · frame ${state.frame} / ${end}` : ` ${state.frame}/${end}`);
  let ahead = state.frame;
  while (ahead + step() <= end && runs.every((run) => wanted(run, ahead + step()).every(([kind, own]) => frames.has(run, kind, own)))) ahead += step();
  $("scrub").querySelector(".loaded").style.width = `${end ? (100 * ahead) / end : 0}%`;
}

// ---- the panel ----

function segments(options, get, set) {
  const element = make("div", { className: "segments", role: "group" });
  const update = () => [...element.children].forEach((b) => b.setAttribute("aria-pressed", String(b.value) === String(get())));
  for (const [value, text, title] of options)
    element.append(make("button", { value, textContent: text, title: title ?? "", onclick: () => (set(value), update()) }));
  element.update = update;
  update();
  updates.push(update);
  return element;
}
const updates = [];
function row(label, control) {
  return make("div", { className: "row" }, make("label", { textContent: label }), control);
}
function choose(options, get, set) {
  const element = make("select", { onchange: () => set(element.value) }, ...options.map(([value, text]) => make("option", { value, textContent: text })));
  const update = () => (element.value = get());
  update();
  updates.push(update);
  return element;
}
function set(values) {
  Object.assign(state, values);
  if ("cutAxis" in values || "cutBy" in values || "surface" in values || "particles" in values || "colour" in values) ranges.delete("level");
  updates.forEach((u) => u());
  remember({ surface: state.surface, colour: state.colour });
  show(state.frame);
}

function lookPage() {
  const page = make("div", { className: "page" });
  const axes = ["x", "y", "z"];
  const slider = make("input", { type: "range", min: 0, max: 1, step: 0.002, value: state.cutAt, ariaLabel: "Place of the cut" });
  const out = make("output");
  slider.oninput = () => {
    state.cutAt = Number(slider.value);
    update();
    slide();
  };
  const cells = () => runs.every((r) => r.about.cells);
  const note = make("p");
  const rows = make("div", {}, make("div", { className: "row" }, slider, out));
  const by = row("Colour cells by", choose([["level", "level"], ["size", "size"], ["speed", "speed"], ["pressure", "pressure"]], () => state.cutBy, (v) => set({ cutBy: v })));
  const update = () => {
    rows.hidden = state.cutAxis < 0;
    by.hidden = state.cutAxis < 0 || !cells();
    note.hidden = state.cutAxis < 0 || (cells() && !saved);
    if (cells()) note.replaceChildren("A saved page has the cells in the middle only.");
    else note.replaceChildren("This run has no cells; the cut shows the particles next to it. To see cells, run with ", make("code", { textContent: "--set output.mesh=true" }));
    slider.disabled = fixedCut();
    slider.value = state.cutAt;
    if (views[0] && state.cutAxis >= 0) out.textContent = `${axes[state.cutAxis]} ${number(state.cutAt * views[0].size.getComponent(state.cutAxis))} m`;
  };
  updates.push(update);
  const colour = row("Colour particles by", choose([["speed", "speed"], ["size", "size"], ["level", "level"]], () => state.colour, (v) => set({ colour: v })));
  updates.push(() => (colour.hidden = !state.particles));
  page.append(
    make("h3", { textContent: "Surface" }),
    segments([["water", "Water"], ["clay", "Matte"], ["speed", "Speed"], ["off", "Off"]], () => state.surface, (v) => set({ surface: v })),
    make("h3", { textContent: "Particles" }),
    segments([[false, "Off"], [true, "On"]], () => state.particles, (v) => set({ particles: v })),
    colour,
    make("h3", { textContent: "Cut" }),
    segments([[-1, "Off"], [0, "x"], [1, "y"], [2, "z"]], () => state.cutAxis, (v) => set({ cutAxis: v })),
    rows, by, note,
    make("h3", { textContent: "Camera" }),
    make("p", { textContent: matchMedia("(pointer: coarse)").matches ? "One finger turns, two fingers move and zoom." : "Drag turns, right-drag moves, the wheel zooms." }),
    make("button", { textContent: "Whole view", className: "plain", title: "R", onclick: goHome }),
  );
  update();
  return page;
}

/** Back to where the camera was; from there to the whole domain, and back to the scene's camera. */
function goHome() {
  stage.reset(stage.moved ? stage.whole : !stage.whole);
}

function column(run, name) {
  return run.stats.columns[name];
}

/** Seconds by stage, the largest ones first, the rest together; by frame of the first run. */
function stageLines(run) {
  const names = run.stats.names.filter((n) => n.startsWith("seconds_"));
  const frame = column(run, "frame") ?? [];
  const sums = names.map((n) => [n.slice(8), (column(run, n) ?? []).reduce((a, b) => a + b, 0)]).sort((a, b) => b[1] - a[1]);
  const top = sums.slice(0, 5).map(([n]) => n), count = Math.max(0, maximum(frame));
  const perFrame = (list) => {
    const y = new Array(count + 1).fill(0);
    for (const n of list) column(run, `seconds_${n}`)?.forEach((v, i) => (y[frame[i]] += v));
    return y.slice(1);
  };
  const x = Array.from({ length: count }, (_, k) => (k + 1) / run.rate);
  const lines = top.map((n, k) => ({ name: n.replaceAll("_", " "), colour: stageColour(k, state.theme), x, y: perFrame([n]) }));
  const rest = sums.slice(5).map(([n]) => n);
  if (rest.length) lines.push({ name: "rest", colour: stageColour(5, state.theme), x, y: perFrame(rest) });
  return lines;
}

function chartsPage() {
  const page = make("div", { className: "page" });
  const each = (name, scale = 1) => () => runs.map((run, k) => ({ name: run.name, colour: runColour(k, state.theme), x: column(run, "time"), y: (column(run, name) ?? []).map((v) => v * scale) }));
  const onTime = (t) => go(t * rate());
  const energy = () =>
    runs.length > 1
      ? runs.map((run, k) => ({ name: run.name, colour: runColour(k, state.theme), x: column(run, "time"), y: (column(run, "energy_kinetic") ?? []).map((v, i) => v + column(run, "energy_potential")[i]) }))
      : ["kinetic", "potential"].map((n, k) => ({ name: n, colour: runColour(k, state.theme), x: column(runs[0], "time"), y: column(runs[0], `energy_${n}`) ?? [] }));
  charts = [
    new Chart("Volume error", "%", each("volume_error", 100), { zero: true, onTime }),
    new Chart(runs.length > 1 ? "Energy" : "Energy, kinetic and potential", "J", energy, { onTime }),
    new Chart("Particles", "", each("particles"), { onTime }),
    new Chart("Fastest particle", "m/s", each("max_speed"), { zero: true, onTime }),
    ...runs.map((run) => new Chart(runs.length > 1 ? `Time a frame, ${run.name}` : "Time a frame, by stage", "s", () => stageLines(run), { stacked: true, onTime })),
  ];
  page.append(...charts.map((c) => c.element));
  return page;
}

function probesPage() {
  const page = make("div", { className: "page" });
  const names = [...new Set(runs.flatMap((r) => r.probes.names.filter((n) => n !== "time")))];
  probeCharts = names.map((name) => new Chart(name, "", () => runs.map((run, k) => ({ name: run.name, colour: runColour(k, state.theme), x: run.probes.columns.time, y: run.probes.columns[name] ?? [] })), { onTime: (t) => go(t * rate()) }));
  if (names.length) page.append(...probeCharts.map((c) => c.element));
  else page.append(make("p", { textContent: "The scene has no probes. A probe writes a height, a pressure or a front at every step:" }), make("pre", { textContent: 'probes = { height { name = "h1", at = {0.5, 0.5} } }' }));
  return page;
}

/** Lua in colours, without running any of it through HTML. */
function lua(text) {
  const pre = make("pre");
  const pattern = /(--\[\[[\s\S]*?\]\]|--[^\n]*)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|\b(function|return|local|for|do|end|if|then|else|elseif|while|in|true|false|nil|and|or|not)\b|\b(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)/g;
  let at = 0;
  for (const m of text.matchAll(pattern)) {
    pre.append(text.slice(at, m.index));
    pre.append(make("span", { className: m[1] ? "comment" : m[2] ? "string" : m[3] ? "word" : "number", textContent: m[0] }));
    at = m.index + m[0].length;
  }
  pre.append(text.slice(at));
  return pre;
}

function scenePage() {
  const page = make("div", { className: "page" });
  for (const run of runs) {
    if (runs.length > 1) page.append(make("h3", { className: "name", textContent: run.name }));
    page.append(run.lua ? lua(run.lua) : make("p", { textContent: "There is no scene.lua." }));
  }
  return page;
}

function duration(s) {
  if (!Number.isFinite(s)) return "–";
  if (s < 60) return `${number(s, 2)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

function aboutPage() {
  const page = make("div", { className: "page" });
  const list = (pairs) => make("dl", {}, ...pairs.filter(([, v]) => v).flatMap(([k, v]) => [make("dt", { textContent: k }), make("dd", { textContent: v })]));
  const update = () => {
    page.replaceChildren();
    for (const run of runs) {
      const r = run.record, cells = r.resolution?.cells, data = views[run.number]?.current;
      page.append(
        make("h3", { className: "name", textContent: run.name }),
        list([
          ["Status", run.status], ["Message", r.message], ["Suspect", r.suspect], ["Method", r.method ?? run.scene.method], ["Frames", r.frames ? `${r.frames.finished} of ${r.frames.planned}, ${number(r.frames.rate)} a second` : String(run.about.frames)],
          ["Resolution", cells && `${cells.join(" × ")} cells of ${number(r.resolution.cell_size)} m`], ["Domain", run.scene.domain && `${run.scene.domain.filter((v) => v > 0).map((v) => number(v)).join(" × ")} m`],
          ["Time", Number.isFinite(r.seconds) && duration(r.seconds)], ["Time a frame", r.frames?.finished > 0 && duration(r.seconds / r.frames.finished)],
          ["Memory", r.bytes_peak && `${number(r.bytes_peak / 1e6)} MB`], ["Machine", r.machine?.cpu], ["Threads", r.machine?.threads && String(r.machine.threads)], ["Version", r.version],
          ["Triangles", data?.surface && data.surface.triangles.toLocaleString("en")], ["Particles", data?.particles && data.particles.count.toLocaleString("en")],
        ]),
      );
      if (r.command) page.append(make("p", {}, make("code", { textContent: r.command })));
    }
  };
  page.update = update;
  update();
  return page;
}

const TABS = [["look", "Look", lookPage], ["charts", "Charts", chartsPage], ["probes", "Probes", probesPage], ["scene", "Scene", scenePage], ["about", "Run", aboutPage]];
const pages = {};
function openTab(name) {
  state.tab = name;
  for (const b of $("tabs").children) b.setAttribute("aria-selected", b.value === name);
  for (const [k, p] of Object.entries(pages)) p.hidden = k !== name;
  updateCharts();
}
function buildPanel() {
  updates.length = 0;
  $("tabs").replaceChildren(...TABS.map(([value, text]) => make("button", { value, textContent: text, role: "tab", onclick: () => openTab(value) })));
  for (const [name, , build] of TABS) pages[name] = build();
  $("pages").replaceChildren(...Object.values(pages));
  openTab(state.tab);
}
function updateCharts() {
  if (state.tab === "charts") for (const c of charts) c.paint(time(), state.theme);
  if (state.tab === "probes") for (const c of probeCharts) c.paint(time(), state.theme);
  if (state.tab === "about") pages.about?.update();
}

// ---- status ----

function updateSuspect() {
  const badge = $("suspect"), suspects = runs.filter((r) => r.record.suspect);
  badge.hidden = suspects.length === 0;
  badge.title = suspects.map((r) => (runs.length > 1 ? `${r.name}: ` : "") + r.record.suspect).join("\n");
}
function updateStatus() {
  updateSuspect();
  const element = $("status"), busyRuns = runs.filter((r) => r.status === "running");
  $("title").textContent = runs.map((r) => r.name).join("  ·  ");
  document.title = `${runs.map((r) => r.name).join(", ")} – Undine`;
  if (busyRuns.length) {
    const r = busyRuns[0].record, f = r.frames ?? {};
    const left = f.finished > 0 ? (r.seconds / f.finished) * (f.planned - f.finished) : NaN;
    element.dataset.kind = "running";
    element.textContent = `running, frame ${f.finished ?? 0} of ${f.planned ?? "?"}${Number.isFinite(left) ? `, ${duration(left)} left` : ""}`;
    return;
  }
  const worst = ["failed", "stopped", "interrupted", "done"].find((s) => runs.some((r) => r.status === s)) ?? "";
  element.dataset.kind = worst === "interrupted" ? "stopped" : worst;
  element.textContent = { failed: "failed", stopped: "stopped before its end", interrupted: "interrupted", done: "" }[worst] ?? "";
  element.hidden = !element.textContent;
}

function placeLabels() {
  $("labels").replaceChildren(
    ...(runs.length > 1 ? runs.map((run, k) => {
      const cell = stage.cell(k), label = make("div", {}, make("i"), run.name, make("small", { textContent: run.record.method ?? run.scene.method ?? "" }));
      label.firstChild.style.background = runColour(k, state.theme);
      label.style.left = `${cell.x + 12}px`;
      label.style.top = `${cell.y + 12}px`;
      return label;
    }) : []),
  );
}

function setTheme(name) {
  state.theme = name;
  document.documentElement.dataset.theme = name;
  icon($("theme"), name === "dark" ? "light" : "dark");
  stage?.setTheme(name);
  if (runs.length) placeLabels(), updateCharts();
}

// ---- news from the server ----

async function look() {
  try {
    const list = await listRuns();
    const was = last();
    let changed = false;
    for (const [k, { about }] of list.entries()) {
      const run = runs[k];
      if (!run) continue;
      const restarted = about.frames < run.about.frames;
      if (await run.refresh(about)) changed = true;
      if (restarted) frames.forget(run);
    }
    if (!$("toast").hidden && $("toast").dataset.kind === "lost") say("");
    $("toast").dataset.kind = "";
    if (!changed) return;
    updateStatus();
    if (probeCharts.length === 0 && runs.some((r) => r.probes.names.length > 1)) buildPanel();
    if (last() !== was || state.frame > last()) {
      if ((state.follow && !state.playing) || state.frame > last()) await show(last());
      else updateBar();
    }
    updateCharts();
  } catch {
    say("The viewer's server has ended; start `undine view` again.");
    $("toast").dataset.kind = "lost";
  }
}

// ---- keys, buttons ----

const KEYS = [
  ["space", "play, pause"], ["← →", "a frame back, on"], ["shift ← →", "ten frames"], ["home end", "first, last frame"], ["S", "surface: water, matte, speed, off"], ["P", "particles"],
  ["C", "cut: x, y, z, off"], ["[ ]", "move the cut"], ["1 – 5", "tabs"], ["R", "whole view, the scene's camera"], ["L", "again from the start"], ["T", "dark, light"], ["H", "panel"], ["F", "full screen"],
];
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const far = event.shiftKey ? 10 : 1;
  const next = (list, now) => list[(list.indexOf(now) + 1) % list.length];
  const moveCut = (by) => {
    if (state.cutAxis < 0 || fixedCut()) return;
    state.cutAt = Math.min(1, Math.max(0, state.cutAt + by));
    updates.forEach((u) => u());
    slide();
  };
  const acts = {
    " ": () => play(), ArrowLeft: () => (play(false), go(state.frame - far * step())), ArrowRight: () => (play(false), go(state.frame + far * step())), Home: () => go(0), End: () => go(last()),
    s: () => set({ surface: next(["water", "clay", "speed", "off"], state.surface) }), p: () => set({ particles: !state.particles }), c: () => set({ cutAxis: next([-1, 0, 1, 2], state.cutAxis) }),
    "[": () => moveCut(-0.02), "]": () => moveCut(0.02), r: goHome, l: () => toggleLoop(), t: () => $("theme").click(), h: () => $("panel-toggle").click(), "?": () => $("help").click(),
    f: () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen?.()),
  };
  for (const [k, [name]] of TABS.entries()) acts[String(k + 1)] = () => openTab(name);
  const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act || (event.target.tagName === "BUTTON" && event.key === " ")) return;
  event.preventDefault();
  act();
}
function toggleLoop() {
  state.loop = !state.loop;
  $("loop").setAttribute("aria-pressed", state.loop);
}

function wire() {
  for (const [id, name] of [["play", "play"], ["back", "back"], ["forward", "forward"], ["loop", "loop"], ["panel-toggle", "panel"]]) icon($(id), name);
  $("play").onclick = () => play();
  $("back").onclick = () => (play(false), go(state.frame - step()));
  $("forward").onclick = () => (play(false), go(state.frame + step()));
  $("loop").onclick = toggleLoop;
  $("loop").setAttribute("aria-pressed", state.loop);
  $("theme").onclick = () => {
    setTheme(state.theme === "dark" ? "light" : "dark");
    remember({ theme: state.theme });
  };
  $("panel-toggle").onclick = () => $("app").classList.toggle("no-panel");
  $("keys").append(make("h2", { textContent: "Keys" }), make("dl", {}, ...KEYS.flatMap(([k, text]) => [make("dt", {}, make("kbd", { textContent: k })), make("dd", { textContent: text })])));
  $("help").onclick = () => ($("keys").open ? $("keys").close() : $("keys").showModal());
  $("keys").onclick = () => $("keys").close();
  $("speed").append(...[0.1, 0.25, 0.5, 1, 2, 4].map((v) => make("option", { value: v, textContent: `${v}×`, selected: v === 1 })));
  $("speed").onchange = () => {
    state.speed = Number($("speed").value);
    clockStart = performance.now();
    frameStart = state.frame;
  };
  const scrub = $("scrub");
  const at = (e) => {
    const box = scrub.getBoundingClientRect();
    go(((e.clientX - box.left) / box.width) * last());
  };
  scrub.addEventListener("pointerdown", (e) => {
    scrub.setPointerCapture(e.pointerId);
    play(false);
    at(e);
  });
  scrub.addEventListener("pointermove", (e) => scrub.hasPointerCapture(e.pointerId) && at(e));
  addEventListener("keydown", onKey);
  addEventListener("resize", () => (placeLabels(), updateCharts(), updateBar()));
}

async function start() {
  setTheme(state.theme);
  wire();
  try {
    stage = new Stage($("view"));
  } catch (error) {
    say(`The picture needs WebGL 2, which this browser does not give: ${error.message}`);
    return;
  }
  stage.setTheme(state.theme);
  try {
    runs = (await listRuns()).map(({ about, every }, k) => new Run(k, about, every));
    await Promise.all(runs.map((r) => r.open()));
  } catch (error) {
    say(`The run cannot be read: ${error.message}`);
    return;
  }
  if (remembered.colour) state.colour = remembered.colour;
  if (innerWidth <= 760) $("app").classList.add("no-panel");
  if (!runs.some((r) => r.about.surface) && runs.some((r) => r.about.particles)) Object.assign(state, { surface: "off", particles: true });
  for (const run of runs) views.push(await stage.add(run));
  stage.reset();
  buildPanel();
  updates.forEach((u) => u());
  updateStatus();
  placeLabels();
  new ResizeObserver(placeLabels).observe($("stage"));
  state.follow = runs.some((r) => r.status === "running");
  await show(asked.has("frame") ? Math.min(Number(asked.get("frame")) || 0, last()) : state.follow ? last() : 0);
  if (!saved) {
    const again = async () => {
      await look();
      setTimeout(again, document.hidden ? 4 * LOOK_EVERY : LOOK_EVERY);
    };
    setTimeout(again, LOOK_EVERY);
  }
  window.undine = {
    state, frames, stage, runs, views, go, play, set, openTab,
    get shown() {
      return shown;
    },
    get last() {
      return last();
    },
  };
  document.documentElement.dataset.ready = "yes";
}

start();
