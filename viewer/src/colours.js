// Colours for numbers and for runs. The ramp is even in lightness from dark to light, and tells
// apart what people with weak colour vision see.

const RAMP = [
  [0.11, 0.13, 0.38], [0.13, 0.28, 0.58], [0.1, 0.45, 0.66], [0.15, 0.61, 0.66],
  [0.36, 0.75, 0.6], [0.65, 0.86, 0.53], [0.93, 0.93, 0.6],
];

export function ramp(t) {
  const x = Math.min(Math.max(Number.isFinite(t) ? t : 0, 0), 1) * (RAMP.length - 1);
  const i = Math.min(Math.floor(x), RAMP.length - 2), s = x - i;
  return RAMP[i].map((c, k) => c + (RAMP[i + 1][k] - c) * s);
}

export const rampCss = `linear-gradient(90deg, ${RAMP.map((c) => `rgb(${c.map((v) => Math.round(255 * v)).join(" ")})`).join(", ")})`;

/** Levels of the octree: apart from their neighbours, coarse ones cool and fine ones warm. */
const LEVELS = ["#27408b", "#2f6fb0", "#38a0b8", "#57c09a", "#a6cf6a", "#ecc956", "#ee9a4d", "#dd6150", "#b8346b", "#7d2a80"];
export function levelColour(level, lowest, highest) {
  const t = highest > lowest ? (level - lowest) / (highest - lowest) : 0;
  const hex = LEVELS[Math.round(t * (LEVELS.length - 1))];
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
}
export const levelsCss = `linear-gradient(90deg, ${LEVELS.join(", ")})`;

const RUNS = { dark: ["#4bb3e6", "#f2a65a", "#7fd38b", "#d98be0", "#e6d15c", "#ef7d7d", "#8fa6ff", "#5fd6c9"], light: ["#0b78b3", "#c7661a", "#2b8a47", "#9239a0", "#8a7400", "#bf3b3b", "#4453c9", "#0c857a"] };
export const runColour = (k, theme) => RUNS[theme][k % RUNS[theme].length];
const STAGES = { dark: ["#4bb3e6", "#f2a65a", "#7fd38b", "#d98be0", "#e6d15c", "#7c8b99"], light: ["#2f8fc4", "#dd8433", "#4aa565", "#a65bb3", "#b79b1f", "#93a1ad"] };
export const stageColour = (k, theme) => STAGES[theme][k % STAGES[theme].length];
