// The picture: water, particles, a cut through the cells, solids, a floor, for one run or several
// side by side under one camera.
//
// Water is drawn in three passes. What is not water goes to a texture; then the way light goes
// through water, the depths of back faces less those of front faces, adds up in another; then the
// front faces bend the first by their normal, colour it by the second and reflect a sky. That needs
// no sorting, whatever the shape. Solids of glass are blended over the rest, their back faces before
// the water and their front faces after it.
//
// A domain without depth is 2D: water and solids are flat there, in colours of their own, and seen
// from the front.
import * as THREE from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { levelColour, ramp } from "./colours.js";

const THEMES = {
  dark: {
    back: [0.0044, 0.0065, 0.0091], floor: [0.058, 0.069, 0.08], joint: [0.028, 0.035, 0.042], edge: 0x4d6172,
    sky: [0.05, 0.075, 0.1], horizon: [0.22, 0.27, 0.31], panel: [3.2, 3.3, 3.4], solid: [0.42, 0.4, 0.38], glass: [0.16, 0.23, 0.25],
    scatter: [0.02, 0.165, 0.25], skin: [0.10, 0.27, 0.36], ambient: [0.16, 0.18, 0.2], light: [1.0, 0.97, 0.92],
  },
  light: {
    back: [0.8388, 0.8796, 0.9047], floor: [0.71, 0.735, 0.75], joint: [0.56, 0.595, 0.62], edge: 0x8fa1b0,
    sky: [0.38, 0.55, 0.72], horizon: [0.95, 0.98, 1.0], panel: [4, 4, 3.9], solid: [0.66, 0.64, 0.6], glass: [0.2, 0.33, 0.34],
    scatter: [0.012, 0.13, 0.2], skin: [0.10, 0.34, 0.46], ambient: [0.42, 0.45, 0.48], light: [0.85, 0.82, 0.77],
  },
};
/** Of water, by the domain's longest side. */
const ABSORPTION = [4.2, 1.05, 0.6];

const common = /* glsl */ `
uniform vec3 uSun, uSky, uHorizon, uPanel, uAmbient, uLight;
vec3 sky(vec3 d) {
  float up = clamp(d.y, 0.0, 1.0);
  vec3 c = mix(uHorizon, uSky, sqrt(up));
  if (d.y < 0.0) c = mix(uHorizon, uHorizon * 0.55, smoothstep(0.0, 0.6, -d.y));
  float s = dot(d, uSun);
  return c + uPanel * (smoothstep(0.90, 0.97, s) * 0.55 + 0.10 * pow(max(s, 0.0), 6.0));
}
vec3 matte(vec3 colour, vec3 n) {
  float sun = max(dot(n, uSun), 0.0);
  float fill = 0.5 + 0.5 * n.y;
  return colour * (uAmbient * (0.55 + 0.9 * fill) + uLight * (0.75 * sun + 0.12 * max(dot(n, vec3(0.75, 0.2, 0.6)), 0.0)));
}
vec3 ramp(float t) {
  t = clamp(t, 0.0, 1.0) * 6.0;
  vec3 c = vec3(0.11, 0.13, 0.38);
  c = mix(c, vec3(0.13, 0.28, 0.58), clamp(t, 0.0, 1.0));
  c = mix(c, vec3(0.10, 0.45, 0.66), clamp(t - 1.0, 0.0, 1.0));
  c = mix(c, vec3(0.15, 0.61, 0.66), clamp(t - 2.0, 0.0, 1.0));
  c = mix(c, vec3(0.36, 0.75, 0.60), clamp(t - 3.0, 0.0, 1.0));
  c = mix(c, vec3(0.65, 0.86, 0.53), clamp(t - 4.0, 0.0, 1.0));
  c = mix(c, vec3(0.93, 0.93, 0.60), clamp(t - 5.0, 0.0, 1.0));
  return c * c * (0.35 + 0.65 * c); // to linear, near enough
}`;

const waterVertex = /* glsl */ `
attribute vec3 velocity;
varying vec3 vPlace, vNormal;
varying float vSpeed, vDepth;
void main() {
  vPlace = position;
  vNormal = normal;
  vSpeed = length(velocity);
  vec4 p = viewMatrix * vec4(position, 1.0);
  vDepth = -p.z;
  gl_Position = projectionMatrix * p;
}`;

const thicknessFragment = /* glsl */ `
varying vec3 vPlace, vNormal;
varying float vSpeed, vDepth;
uniform vec4 uCut;
void main() {
  if (dot(vPlace, uCut.xyz) > uCut.w) discard;
  gl_FragColor = vec4(gl_FrontFacing ? -vDepth : vDepth, 0.0, 0.0, 1.0);
}`;

const waterFragment = /* glsl */ `
${common}
varying vec3 vPlace, vNormal;
varying float vSpeed, vDepth;
uniform vec4 uCut, uView;
uniform sampler2D uBehind, uThickness;
uniform vec3 uAbsorption, uScatter, uSkin;
uniform vec3 uSize;
uniform float uUnit, uStyle, uFastest, uOpen;
void main() {
  if (dot(vPlace, uCut.xyz) > uCut.w) discard;
  if (uSize.z == 0.0) {
    vec3 water = mix(vec3(0.016, 0.147, 0.462), vec3(0.074, 0.342, 0.708), clamp(vPlace.y / uSize.y, 0.0, 1.0));
    gl_FragColor = vec4(uStyle < 1.5 ? water : ramp(vSpeed / uFastest), 1.0);
    #include <colorspace_fragment>
    return;
  }
  vec3 v = normalize(cameraPosition - vPlace);
  vec3 n = normalize(vNormal);
  // water that stands at a side of the domain is flat there; its vertices have normals of the surface
  vec3 low = step(vPlace, vec3(2e-5 * uUnit)), high = step(uSize - 2e-5 * uUnit, vPlace);
  vec3 side = high - low;
  if (dot(side, side) > 0.5) n = dot(side, side) < 1.5 || dot(n, side) < 0.5 ? normalize(side) : n;
  if (dot(n, v) < 0.0) n = normalize(n - 1.02 * dot(n, v) * v);
  if (uStyle > 0.5) {
    vec3 colour = uStyle < 1.5 ? vec3(0.30, 0.52, 0.62) : ramp(vSpeed / uFastest);
    float rim = pow(1.0 - max(dot(n, v), 0.0), 4.0);
    gl_FragColor = vec4(matte(colour, n) * 1.25 + 0.22 * rim * uHorizon, 1.0);
    #include <colorspace_fragment>
    return;
  }
  vec2 at = (gl_FragCoord.xy - uView.xy) / uView.zw;
  float thick = max(texture2D(uThickness, at).r, 0.0) / uUnit;
  if (uOpen > 0.5) thick = min(thick, 0.3);
  vec3 bent = (viewMatrix * vec4(n, 0.0)).xyz;
  vec2 shift = -bent.xy * vec2(uView.w / uView.z, 1.0) * 0.16 * min(thick, 0.5) / (0.4 + vDepth / uUnit);
  vec3 behind = texture2D(uBehind, clamp(at + shift, 0.002, 0.998)).rgb;
  vec3 through = exp(-uAbsorption * thick);
  vec3 body = behind * through + uScatter * (1.0 - exp(-4.2 * thick)) * (0.75 + 0.5 * max(n.y, 0.0));
  float c = max(dot(n, v), 0.0);
  // thin water would vanish: what a sheet shows of itself, more where it is seen along
  body = mix(body, uSkin * (0.7 + 0.45 * max(n.y, 0.0)), 0.10 + 0.34 * (1.0 - c) * (1.0 - c));
  float mirror = 0.02 + 0.98 * pow(1.0 - c, 5.0);
  vec3 r = reflect(-v, n);
  float glint = pow(max(dot(r, uSun), 0.0), 900.0) * 3.0;
  gl_FragColor = vec4(mix(body, sky(r), min(mirror, 0.85)) + glint * uLight, 1.0);
  #include <colorspace_fragment>
}`;

const solidVertex = /* glsl */ `
varying vec3 vNormal, vPlace;
void main() {
  vec4 p = modelMatrix * vec4(position, 1.0);
  vPlace = p.xyz;
  vNormal = mat3(modelMatrix) * normal;
  gl_Position = projectionMatrix * viewMatrix * p;
}`;
const solidFragment = /* glsl */ `
${common}
uniform vec3 uColour, uSize;
varying vec3 vNormal, vPlace;
void main() {
  vec3 n = normalize(vNormal);
  gl_FragColor = vec4(uSize.z == 0.0 ? 0.7 * uColour : matte(uColour, n), 1.0);
  #include <colorspace_fragment>
}`;

const glassFragment = /* glsl */ `
${common}
uniform vec3 uGlass, uSize;
varying vec3 vNormal, vPlace;
void main() {
  vec3 v = normalize(cameraPosition - vPlace), n = normalize(vNormal);
  if (dot(n, v) < 0.0) n = -n;
  float c = max(dot(n, v), 0.0), mirror = 0.04 + 0.96 * pow(1.0 - c, 5.0);
  vec3 r = reflect(-v, n);
  // what glass shows of itself, more where it is seen along
  float body = uSize.z == 0.0 ? 0.3 : 0.04 + 0.4 * (1.0 - c) * (1.0 - c);
  float glint = uSize.z == 0.0 ? 0.0 : pow(max(dot(r, uSun), 0.0), 400.0);
  vec3 colour = mix(uGlass, sky(r), mirror / (mirror + body));
  float share = uSize.z == 0.0 ? body : min(mirror + body, 0.9);
  gl_FragColor = vec4(colour + glint * 3.0 * uLight, clamp(share + glint, 0.0, 1.0));
  #include <colorspace_fragment>
}`;

const floorVertex = /* glsl */ `
varying vec3 vPlace;
void main() {
  vPlace = (modelMatrix * vec4(position, 1.0)).xyz;
  gl_Position = projectionMatrix * viewMatrix * vec4(vPlace, 1.0);
}`;
const floorFragment = /* glsl */ `
uniform vec3 uFloor, uJoint, uBack, uMiddle;
uniform float uUnit;
varying vec3 vPlace;
void main() {
  vec2 tile = vPlace.xz / (0.125 * uUnit);
  vec2 wide = fwidth(tile);
  vec2 from = abs(fract(tile - 0.5) - 0.5);
  vec2 line = 1.0 - smoothstep(vec2(0.02), vec2(0.02) + wide, from);
  float joint = max(line.x, line.y) * (1.0 - smoothstep(0.15, 0.6, max(wide.x, wide.y)));
  float odd = mod(floor(tile.x) + floor(tile.y), 2.0);
  vec3 colour = mix(uFloor * (0.93 + 0.07 * odd), uJoint, joint);
  float far = smoothstep(0.75, 2.6, length(vPlace.xz - uMiddle.xz) / uUnit);
  gl_FragColor = vec4(mix(colour, uBack, far), 1.0);
  #include <colorspace_fragment>
}`;

const pointVertex = /* glsl */ `
attribute float radius, value;
uniform float uScale, uLow, uHigh, uSlabOn;
uniform vec4 uSlab;
varying float vValue;
varying vec3 vMiddle;
varying float vRadius;
void main() {
  vec4 p = viewMatrix * vec4(position, 1.0);
  vValue = (value - uLow) / max(uHigh - uLow, 1e-9);
  vMiddle = p.xyz;
  vRadius = radius;
  gl_Position = projectionMatrix * p;
  gl_PointSize = max(2.0 * radius * uScale / max(-p.z, 1e-6), 1.5);
  float off = dot(position, uSlab.xyz) - uSlab.w;
  if (uSlabOn > 0.5 && (off > 0.0 || off < -3.0 * radius)) gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
}`;
const pointFragment = /* glsl */ `
${common}
varying float vValue;
varying vec3 vMiddle;
varying float vRadius;
void main() {
  vec2 q = gl_PointCoord * 2.0 - 1.0;
  q.y = -q.y;
  float d = dot(q, q);
  if (d > 1.0) discard;
  vec3 n = vec3(q, sqrt(1.0 - d));
  vec3 world = normalize((vec4(n, 0.0) * viewMatrix).xyz);
  gl_FragColor = vec4(matte(ramp(vValue), world) * 1.5, 1.0);
  #include <colorspace_fragment>
}`;

const NOWHERE = new THREE.Vector4(0, 0, 0, 1e9);

class View {
  constructor(stage, run) {
    this.stage = stage;
    this.run = run;
    this.scene = new THREE.Scene();
    this.water = new THREE.Scene();
    this.glassBack = new THREE.Scene();
    this.glassFront = new THREE.Scene();
    this.solids = [];
    const size = run.scene.domain ?? [1, 1, 1];
    this.size = new THREE.Vector3(...size);
    this.flat = size[2] === 0;
    this.unit = Math.max(...size);
    const own = { uCut: { value: NOWHERE.clone() }, uUnit: { value: this.unit }, uSize: { value: this.size }, uView: { value: new THREE.Vector4() }, uFastest: { value: 1 }, uOpen: { value: 0 } };
    this.waterUniforms = { ...stage.uniforms, ...own };
    this.waterMaterial = new THREE.ShaderMaterial({ vertexShader: waterVertex, fragmentShader: waterFragment, uniforms: this.waterUniforms, side: THREE.DoubleSide, polygonOffset: this.flat, polygonOffsetFactor: 2, polygonOffsetUnits: 2 });
    this.thickMaterial = new THREE.ShaderMaterial({
      vertexShader: waterVertex, fragmentShader: thicknessFragment, uniforms: this.waterUniforms, side: THREE.DoubleSide,
      depthTest: false, depthWrite: false, transparent: true, blending: THREE.CustomBlending, blendSrc: THREE.OneFactor, blendDst: THREE.OneFactor, blendEquation: THREE.AddEquation,
    });
    this.surface = new THREE.Mesh(new THREE.BufferGeometry(), this.waterMaterial);
    this.surface.frustumCulled = false;
    this.surface.matrixAutoUpdate = false;
    this.water.add(this.surface);
    this.floor = new THREE.Mesh(
      new THREE.PlaneGeometry(8 * this.unit, 8 * this.unit).rotateX(-Math.PI / 2).translate(size[0] / 2, -1e-4 * this.unit, size[2] / 2),
      new THREE.ShaderMaterial({ vertexShader: floorVertex, fragmentShader: floorFragment, uniforms: { ...stage.uniforms, uUnit: own.uUnit, uMiddle: { value: new THREE.Vector3(size[0] / 2, 0, size[2] / 2) } } }),
    );
    this.floor.visible = !this.flat;
    this.scene.add(this.floor);
    const box = new THREE.BoxGeometry(...size).translate(size[0] / 2, size[1] / 2, size[2] / 2);
    this.box = new THREE.LineSegments(new THREE.EdgesGeometry(box), new THREE.LineBasicMaterial({ color: 0xffffff, transparent: true, opacity: 0.75 }));
    box.dispose();
    this.scene.add(this.box);
    this.pointUniforms = { ...stage.uniforms, uScale: { value: 1 }, uLow: { value: 0 }, uHigh: { value: 1 }, uSlab: { value: new THREE.Vector4() }, uSlabOn: { value: 0 } };
    this.points = new THREE.Points(new THREE.BufferGeometry(), new THREE.ShaderMaterial({ vertexShader: pointVertex, fragmentShader: pointFragment, uniforms: this.pointUniforms }));
    this.points.frustumCulled = false;
    this.points.visible = false;
    this.scene.add(this.points);
    this.cellSize = 1;
    this.cut = new THREE.Group();
    this.cutFaces = new THREE.Mesh(new THREE.BufferGeometry(), new THREE.MeshBasicMaterial({ vertexColors: true, side: THREE.DoubleSide, polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 1 }));
    this.cutEdges = new THREE.LineSegments(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ color: 0x0b1a26, transparent: true, opacity: 0.55 }));
    this.cutFaces.frustumCulled = this.cutEdges.frustumCulled = false;
    this.cut.add(this.cutFaces, this.cutEdges);
    this.scene.add(this.cut);
  }

  async loadSolids() {
    const uniforms = { ...this.stage.uniforms, uColour: this.stage.uniforms.uSolid, uSize: this.waterUniforms.uSize };
    for (const [k, about] of (this.run.scene.solids ?? []).entries()) {
      if (!about.triangles) continue;
      const mesh = await this.run.solid(k);
      if (!mesh) continue;
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(mesh.position, 3));
      geometry.setAttribute("normal", new THREE.BufferAttribute(mesh.normal, 3));
      geometry.setIndex(new THREE.BufferAttribute(mesh.index, 1));
      const add = (scene, options) => {
        const solid = new THREE.Mesh(geometry, new THREE.ShaderMaterial({ vertexShader: solidVertex, uniforms, ...options }));
        solid.matrixAutoUpdate = false;
        solid.userData.number = k;
        this.solids.push(solid);
        scene.add(solid);
      };
      const glass = { fragmentShader: glassFragment, transparent: true, depthWrite: false };
      if (about.material === "glass") {
        if (!this.flat) add(this.glassBack, { ...glass, side: THREE.BackSide });
        add(this.glassFront, { ...glass, side: THREE.FrontSide });
      } else add(this.scene, { fragmentShader: solidFragment });
    }
  }

  pose(frame) {
    for (const solid of this.solids) {
      const p = this.run.pose(solid.userData.number, frame);
      if (!p) continue;
      solid.matrix.set(...p, 0, 0, 0, 1);
      solid.matrixWorldNeedsUpdate = true;
    }
  }

  showSurface(data) {
    const geometry = new THREE.BufferGeometry();
    if (data && data.triangles > 0) {
      const buffer = new THREE.InterleavedBuffer(data.vertex, 9);
      geometry.setAttribute("position", new THREE.InterleavedBufferAttribute(buffer, 3, 0));
      geometry.setAttribute("normal", new THREE.InterleavedBufferAttribute(buffer, 3, 3));
      geometry.setAttribute("velocity", new THREE.InterleavedBufferAttribute(buffer, 3, 6));
      geometry.setIndex(new THREE.BufferAttribute(data.index, 1));
    }
    this.surface.geometry.dispose();
    this.surface.geometry = geometry;
    this.hasSurface = Boolean(data && data.triangles > 0);
  }

  /** values: by which to colour; range: [low, high] */
  showParticles(data, values, range) {
    const geometry = new THREE.BufferGeometry();
    if (data && data.count > 0) {
      geometry.setAttribute("position", new THREE.BufferAttribute(data.position, 3));
      geometry.setAttribute("radius", new THREE.BufferAttribute(data.radius, 1));
      geometry.setAttribute("value", new THREE.BufferAttribute(values, 1));
    }
    this.points.geometry.dispose();
    this.points.geometry = geometry;
    this.points.visible = Boolean(data && data.count > 0);
    [this.pointUniforms.uLow.value, this.pointUniforms.uHigh.value] = range;
  }

  /** The polygons in which a plane meets cells, each in its colour, with edges. */
  showCells(cut, by, range) {
    const { position, first, corner, count } = cut, total = corner.length;
    const place = new Float32Array(3 * total), colour = new Float32Array(3 * total);
    const index = new Uint32Array(3 * Math.max(0, total - 2 * count)), edges = new Uint32Array(2 * total);
    // edges that two polygons share are drawn once: by their lesser point, those found so far
    const head = new Int32Array(position.length / 3).fill(-1), next = new Int32Array(total);
    const one = new THREE.Color();
    let edgeCount = 0;
    const addEdge = (a, b) => {
      const low = Math.min(a, b), high = Math.max(a, b);
      for (let e = head[low]; e >= 0; e = next[e]) if (edges[2 * e + 1] === high) return;
      edges[2 * edgeCount] = low;
      edges[2 * edgeCount + 1] = high;
      next[edgeCount] = head[low];
      head[low] = edgeCount++;
    };
    for (let i = 0, t = 0; i < count; i++) {
      const value = cut[by][i], begin = first[i], end = first[i + 1];
      one.setRGB(...(by === "level" ? levelColour(value, ...range) : ramp((value - range[0]) / (range[1] - range[0] || 1))), THREE.SRGBColorSpace);
      for (let k = begin; k < end; k++) {
        const p = 3 * corner[k];
        place[3 * k] = position[p];
        place[3 * k + 1] = position[p + 1];
        place[3 * k + 2] = position[p + 2];
        one.toArray(colour, 3 * k);
        addEdge(corner[k], corner[k + 1 < end ? k + 1 : begin]);
        if (k < begin + 2) continue;
        index[t++] = begin;
        index[t++] = k - 1;
        index[t++] = k;
      }
    }
    const faces = new THREE.BufferGeometry(), lines = new THREE.BufferGeometry();
    faces.setAttribute("position", new THREE.BufferAttribute(place, 3));
    faces.setAttribute("color", new THREE.BufferAttribute(colour, 3));
    faces.setIndex(new THREE.BufferAttribute(index, 1));
    lines.setAttribute("position", new THREE.BufferAttribute(position, 3));
    lines.setIndex(new THREE.BufferAttribute(edges.subarray(0, 2 * edgeCount), 1));
    this.cutFaces.geometry.dispose();
    this.cutEdges.geometry.dispose();
    this.cutFaces.geometry = faces;
    this.cutEdges.geometry = lines;
    this.cut.visible = count > 0;
    this.cellSize = cut.ranges.size[0];
    return count;
  }

  /** Nothing of water before the plane is drawn; axis < 0: all is. */
  cutAt(axis, at, side) {
    const cut = this.waterUniforms.uCut.value;
    const slab = this.pointUniforms.uSlab.value;
    this.waterUniforms.uOpen.value = axis < 0 ? 0 : 1;
    if (axis < 0) {
      cut.copy(NOWHERE);
      this.cut.visible = false;
      return;
    }
    const n = [0, 0, 0];
    n[axis] = side;
    cut.set(...n, side * at);
    slab.set(...n, side * at);
  }
}

export class Stage {
  constructor(canvas) {
    this.canvas = canvas;
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, powerPreference: "high-performance", preserveDrawingBuffer: true });
    this.renderer.autoClear = false;
    this.renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
    this.camera = new THREE.PerspectiveCamera(30, 1, 0.01, 100);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.addEventListener("change", () => this.draw());
    this.controls.addEventListener("start", () => (this.moved = true));
    this.behind = new THREE.WebGLRenderTarget(4, 4, { type: THREE.HalfFloatType, samples: 4 });
    this.thickness = new THREE.WebGLRenderTarget(4, 4, { type: THREE.HalfFloatType, format: THREE.RedFormat, depthBuffer: false });
    const colour = () => ({ value: new THREE.Vector3() });
    this.uniforms = {
      uSun: { value: new THREE.Vector3(-0.55, 0.95, -0.35).normalize() }, uSky: colour(), uHorizon: colour(), uPanel: colour(), uAmbient: colour(), uLight: colour(),
      uFloor: colour(), uJoint: colour(), uBack: colour(), uSolid: colour(), uGlass: colour(), uScatter: colour(), uSkin: colour(), uAbsorption: { value: new THREE.Vector3(...ABSORPTION) },
      uBehind: { value: this.behind.texture }, uThickness: { value: this.thickness.texture }, uStyle: { value: 0 },
    };
    this.views = [];
    this.whole = false;
    this.dirty = true;
    this.drawn = 0;
    new ResizeObserver(() => {
      if (!this.moved && this.views.length) this.reset();
      this.draw();
    }).observe(canvas.parentElement);
    canvas.addEventListener("webglcontextrestored", () => this.draw());
    const loop = () => {
      requestAnimationFrame(loop);
      this.controls.update();
      if (!this.dirty) return;
      this.dirty = false;
      this.paint();
    };
    requestAnimationFrame(loop);
  }

  draw() {
    this.dirty = true;
  }

  setTheme(name) {
    const t = THEMES[name], u = this.uniforms;
    for (const [to, from] of [["uSky", "sky"], ["uHorizon", "horizon"], ["uPanel", "panel"], ["uAmbient", "ambient"], ["uLight", "light"], ["uFloor", "floor"], ["uJoint", "joint"], ["uBack", "back"], ["uSolid", "solid"], ["uGlass", "glass"], ["uScatter", "scatter"], ["uSkin", "skin"]]) u[to].value.set(...t[from]);
    this.back = new THREE.Color().setRGB(...t.back);
    for (const v of this.views) v.box.material.color.setHex(t.edge);
    this.theme = name;
    this.draw();
  }

  async add(run) {
    const view = new View(this, run);
    this.views.push(view);
    if (this.theme) this.setTheme(this.theme);
    if (this.views.length === 1) this.reset();
    await view.loadSolids();
    this.draw();
    return view;
  }

  /** Where the first scene's camera stands at the start; without one, or with whole, a three-quarter view of all domains; of 2D a view from the front. */
  reset(whole = this.whole) {
    this.moved = false;
    this.whole = whole;
    // one camera is for all runs: if they differ in size, it fits the box around all domains
    const v = this.views[0], size = v.size.clone(), alike = this.views.every((other) => other.size.equals(v.size));
    const { eye, target: aim, fov = 30 } = whole || !alike ? {} : v.run.scene.camera ?? {};
    for (const other of this.views) size.max(other.size);
    this.camera.fov = fov;
    const cell = this.cell(0);
    this.camera.aspect = cell.w / Math.max(cell.h, 1);
    const flat = size.z === 0;
    const back = flat ? new THREE.Vector3(0, 0, 1) : new THREE.Vector3(Math.sin(0.56) * Math.cos(0.37), Math.sin(0.37), Math.cos(0.56) * Math.cos(0.37));
    const target = size.clone().multiplyScalar(0.5);
    if (!flat) target.y *= 0.86;
    let distance = 0;
    const tan = Math.tan((this.camera.fov * Math.PI) / 360), right = new THREE.Vector3(0, 1, 0).cross(back).normalize(), up = back.clone().cross(right);
    for (let c = 0; c < 8; c++) {
      const p = new THREE.Vector3(c & 1 ? size.x : 0, c & 2 ? size.y : 0, c & 4 ? size.z : 0).sub(target);
      const x = Math.abs(p.dot(right)) / (tan * this.camera.aspect), y = Math.abs(p.dot(up)) / tan;
      distance = Math.max(distance, 1.1 * Math.max(x, y) + p.dot(back));
    }
    if (aim) target.set(...aim);
    this.camera.position.copy(target).addScaledVector(back, distance);
    if (eye) this.camera.position.set(...eye);
    this.controls.target.copy(target);
    const away = this.camera.position.distanceTo(target);
    this.camera.near = Math.min(distance, away) / 200;
    this.camera.far = Math.max(distance, away) * 20;
    this.controls.maxDistance = Math.max(distance, away) * 6;
    this.controls.minDistance = Math.min(distance, away) / 60;
    this.controls.update();
    this.draw();
  }

  /** Where the k-th run is drawn, in CSS pixels from the top left. */
  cell(k) {
    const W = this.canvas.clientWidth, H = this.canvas.clientHeight, n = Math.max(this.views.length, 1);
    const columns = W >= H ? Math.ceil(Math.sqrt(n)) : Math.ceil(n / Math.ceil(Math.sqrt(n)));
    const rows = Math.ceil(n / columns), w = W / columns, h = H / rows;
    return { x: (k % columns) * w, y: Math.floor(k / columns) * h, w, h };
  }

  paint() {
    const { renderer, camera } = this, W = this.canvas.clientWidth, H = this.canvas.clientHeight;
    if (!W || !H || !this.back) return;
    const size = renderer.getSize(new THREE.Vector2());
    if (size.x !== W || size.y !== H) renderer.setSize(W, H, false);
    const ratio = renderer.getPixelRatio();
    renderer.setRenderTarget(null);
    renderer.setScissorTest(false);
    renderer.setViewport(0, 0, W, H);
    renderer.setClearColor(this.back);
    renderer.clear();
    this.views.forEach((view, k) => {
      const { x, y, w, h } = this.cell(k), gap = this.views.length > 1 ? 1 : 0;
      const vw = w - gap, vh = h - gap, bottom = H - y - h;
      const pw = Math.max(1, Math.round(vw * ratio)), ph = Math.max(1, Math.round(vh * ratio));
      camera.aspect = vw / vh;
      camera.updateProjectionMatrix();
      view.pointUniforms.uScale.value = (ph / 2) * camera.projectionMatrix.elements[5];
      // edges of cells that are but a few pixels wide would hide their colours
      const pixels = (view.pointUniforms.uScale.value * view.cellSize) / camera.position.distanceTo(this.controls.target) / ratio;
      view.cutEdges.material.opacity = 0.55 * Math.min(1, Math.max(0.1, pixels / 10));
      const water = view.surface.visible && view.hasSurface && this.uniforms.uStyle.value < 0.5;
      if (water) {
        if (this.behind.width !== pw || this.behind.height !== ph) {
          this.behind.setSize(pw, ph);
          this.thickness.setSize(pw, ph);
        }
        view.waterUniforms.uView.value.set(x * ratio, bottom * ratio, vw * ratio, vh * ratio);
        renderer.setRenderTarget(this.behind);
        renderer.setClearColor(this.back);
        renderer.clear();
        renderer.render(view.scene, camera);
        renderer.render(view.glassBack, camera);
        renderer.setRenderTarget(this.thickness);
        renderer.setClearColor(0x000000, 0);
        renderer.clear();
        view.surface.material = view.thickMaterial;
        renderer.render(view.water, camera);
        view.surface.material = view.waterMaterial;
        renderer.setRenderTarget(null);
      }
      renderer.setViewport(x, bottom, vw, vh);
      renderer.setScissor(x, bottom, vw, vh);
      renderer.setScissorTest(true);
      renderer.setClearColor(this.back);
      renderer.clear();
      renderer.render(view.scene, camera);
      renderer.render(view.glassBack, camera);
      if (view.surface.visible && view.hasSurface) renderer.render(view.water, camera);
      renderer.render(view.glassFront, camera);
      renderer.setScissorTest(false);
    });
    this.drawn++;
    this.onPaint?.();
  }
}
