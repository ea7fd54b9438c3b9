// Draws the boxes and agents of a world and what lies on its floor with WebGL2. Colours, light and shadows are those of
// doorstep's own pictures, and are computed in the same way: every pixel asks all boxes how much light they take.

const MARK = { RECTANGLE: 0, GRID: 1, STRIPES: 2, DISC: 3, GLOW: 4 };
const SURFACE = { THING: 0, FLOOR: 1, SKY: 2 };
const UNTURNED = [1, 0, 0, 0];
const AGENT_CORE = 0.62; // of an agent's half extents: the rest is round
const NEAR = 0.5, FAR = 2000;

const VERTEX_SHADER = `#version 300 es
uniform mat4 placement, view_projection;
uniform mat3 normal_axes;
uniform vec3 half_extents;
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in float material;
out vec3 place, towards, at;
flat out float part;
void main() {
  vec4 world = placement * vec4(position, 1.0);
  place = world.xyz;
  at = position * half_extents;
  towards = normal_axes * (normal / half_extents);
  part = material;
  gl_Position = view_projection * world;
}`;

const FRAGMENT_SHADER = `#version 300 es
precision highp float;
precision highp sampler2D;
uniform sampler2D scene; // boxes, then marks
uniform int boxes, marks, surface, own;
uniform bool is_perspective, is_mesh;
uniform mat3 normal_axes;
uniform vec3 colour, half_extents, eye;
uniform vec3 ground, background, eye_colour, pupil_colour, to_sun;
uniform float shine, bevel, sun_light, sun_radius, sky_light, bounce_light, corner_reach;
in vec3 place, towards, at;
flat in float part;
out vec4 shown;

const int kFloorSurface = 1, kSkySurface = 2;
const int kGrid = 1, kStripes = 2, kDisc = 3, kGlow = 4;
const float kHazeBegins = 60.0, kHazeEnds = 220.0, kBounceHeight = 0.35, kSharpestBorder = 0.015, kDarkness = 1.25;

vec3 linear(vec3 c) { return mix(c / 12.92, pow((c + 0.055) / 1.055, vec3(2.4)), step(0.04045, c)); }
vec3 displayed(vec3 c) { return mix(12.92 * c, 1.055 * pow(c, vec3(1.0 / 2.4)) - 0.055, step(0.0031308, c)); }
vec4 texel(int index) { return texelFetch(scene, ivec2(index % 64, index / 64), 0); }
vec3 turned_back(vec4 q, vec3 v) { // q: (x, y, z, w)
  vec3 t = 2.0 * cross(-q.xyz, v);
  return v + q.w * t + cross(-q.xyz, t);
}

// ---- The floor

float inside(float distance, float extent) { return clamp(0.5 - distance / extent, 0.0, 1.0); }

float lines(float coordinate, float extent, float width, float period) {
  float half_line = 0.5 * width / period, u = coordinate / period, w = clamp(extent / period, 1e-6, 1.0);
  float from_line = abs(u - round(u)), low = from_line - 0.5 * w, high = from_line + 0.5 * w;
  return (max(min(high, half_line) - max(low, -half_line), 0.0) + max(high - (1.0 - half_line), 0.0)) / w;
}

float either(float a, float b) { return a + b - a * b; }

float coverage(int kind, vec2 p, vec2 half_size, float width, float period, vec2 extents) {
  float extent = max(extents.x, extents.y);
  if (kind == kDisc || kind == kGlow) {
    float radius = length(p / half_size);
    if (kind == kGlow) return pow(max(1.0 - radius, 0.0), 2.0);
    float distance = (radius - 1.0) * min(half_size.x, half_size.y);
    return inside(width > 0.0 ? abs(distance + 0.5 * width) - 0.5 * width : distance, extent);
  }
  float distance = max(abs(p.x) - half_size.x, abs(p.y) - half_size.y), within = inside(distance, extent);
  if (kind == kGrid)
    return within * either(lines(place.x, extents.x, width, period), lines(place.y, extents.y, width, period));
  if (kind == kStripes)
    return within * either(lines((p.x + p.y) * 0.70710678, extent, width, period),
                           1.0 - inside(distance + 0.5 * width, extent));
  return within;
}

vec3 floor_colour() {
  vec3 paint = linear(ground);
  vec2 extents = max(abs(dFdx(place.xy)) + abs(dFdy(place.xy)), 1e-5);
  for (int i = 0; i < marks; ++i) {
    int first = 3 * boxes + 4 * i;
    vec4 where = texel(first), line = texel(first + 1), shade = texel(first + 2);
    float share = coverage(int(line.x), place.xy - where.xy, where.zw, line.y, line.z, extents);
    paint = mix(paint, linear(shade.rgb), clamp(share, 0.0, 1.0) * shade.a);
  }
  return paint;
}

// ---- Light: how much of the sun and of the sky the boxes leave

float shadow_of(vec3 from, vec3 core, float radius, vec3 sun) {
  vec3 direction = mix(vec3(-1.0), vec3(1.0), step(0.0, sun)) * max(abs(sun), 1e-4), side = core * sign(direction);
  vec3 near = (-side - from) / direction, far = (side - from) / direction;
  vec3 across = direction.yzx * direction.zxy, gaps = abs(across) / sqrt(direction.yzx * direction.yzx + direction.zxy * direction.zxy);
  float gap = max(max(max(near.y - far.z, near.z - far.y) * gaps.x, max(near.z - far.x, near.x - far.z) * gaps.y),
                  max(near.x - far.y, near.y - far.x) * gaps.z) - radius;
  float entry = max(near.x, max(near.y, near.z)), exit = min(far.x, min(far.y, far.z));
  float border = max(entry, 0.0) * sun_radius + kSharpestBorder, hidden = clamp(0.5 - 0.5 * gap / border, 0.0, 1.0);
  return exit + radius > 1e-3 ? hidden * hidden * (3.0 - 2.0 * hidden) : 0.0;
}

float loss_to(vec3 from, vec3 up, vec3 core, float radius, float breadth) {
  vec3 away = from - clamp(from, -core, core);
  float distance = max(length(away) - radius, 0.0), squared = distance * distance;
  float rise = clamp(dot(abs(up), core) + radius - dot(up, from), 0.0, corner_reach);
  float height = 0.5 - 0.5 * distance / sqrt(squared + rise * rise + 1e-6);
  float nearness = max(1.0 - distance / corner_reach, 0.0);
  return height * breadth / sqrt(squared + breadth * breadth) * nearness * nearness;
}

vec3 lit(vec3 base, vec3 normal) {
  float facing = max(dot(normal, to_sun), 0.0), hidden = 0.0, powers = 0.0;
  for (int i = 0; i < boxes; ++i) {
    if (i == own) continue;
    vec4 middle = texel(3 * i), size = texel(3 * i + 1), turn = texel(3 * i + 2);
    vec3 away = place - middle.xyz;
    float reach = length(size.xyz) + middle.w;
    vec3 from = turned_back(turn, away);
    if (facing > 0.0 && length(away - to_sun * dot(away, to_sun)) < reach + 1.0)
      hidden += shadow_of(from, size.xyz, middle.w, turned_back(turn, to_sun));
    if (length(away) < reach + corner_reach)
      powers += pow(loss_to(from, turned_back(turn, normal), size.xyz, middle.w, size.w), 4.0);
  }
  float sun = facing * (1.0 - min(hidden, 1.0));
  float sky = (0.5 + 0.5 * normal.z) * max(1.0 - kDarkness * pow(powers, 0.25), 0.0);
  float rise = max(place.z, 0.0), bounce = (0.5 - 0.5 * normal.z) * rise / (rise + kBounceHeight);
  float received = sun * sun_light + sky * sky_light + bounce * bounce_light;
  return base * (received * (1.0 - shine) + shine);
}

// Normals near a box's edges turn to those of a rounded edge.
vec3 unit_normal() {
  if (is_mesh || bevel == 0.0) return normalize(towards);
  vec3 core = max(half_extents - bevel, 0.0);
  return normalize(normal_axes * (at - clamp(at, -core, core)));
}

vec3 in_haze(vec3 near) {
  float haze = clamp((distance(place, eye) - kHazeBegins) / (kHazeEnds - kHazeBegins), 0.0, 1.0);
  return is_perspective ? mix(near, linear(background), haze * (2.0 - haze)) : near;
}

vec3 surface_colour() {
  if (surface == kSkySurface) return linear(background);
  if (surface == kFloorSurface) return in_haze(lit(floor_colour(), vec3(0.0, 0.0, 1.0)));
  return lit(linear(part == 1.0 ? eye_colour : part == 2.0 ? pupil_colour : colour), unit_normal());
}

void main() {
  shown = vec4(displayed(clamp(surface_colour(), 0.0, 1.0)), 1.0);
}`;

class Renderer {
  // Null where the browser has no WebGL2. look: the table of colours, light and sizes.
  static create(canvas, look) {
    const gl = canvas.getContext("webgl2", { antialias: true });
    return gl && new Renderer(canvas, gl, look);
  }

  constructor(canvas, gl, look) {
    this.canvas = canvas;
    this.gl = gl;
    this.look = look;
    this.bevels = Object.fromEntries(Object.entries(look.bevels).map(([name, bevel]) => [KINDS[name], bevel]));
    this.program = linkProgram(gl);
    this.uniforms = new Proxy({}, {
      get: (known, name) => (known[name] ??= gl.getUniformLocation(this.program, name)),
    });
    this.box = uploadMesh(gl, boxMesh());
    this.agent = uploadMesh(gl, agentMesh());
    this.floor = uploadMesh(gl, new Float32Array([...floorCorner(-1, -1), ...floorCorner(1, -1), ...floorCorner(-1, 1),
      ...floorCorner(1, 1)]));
    this.scene = makeSceneTexture(gl);
    gl.useProgram(this.program);
    gl.enable(gl.DEPTH_TEST);
    this.#setLook(look);
  }

  begin() {
    const { gl } = this;
    this.#fitCanvas();
    gl.disable(gl.SCISSOR_TEST);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.SCISSOR_TEST);
  }

  // Draws a world into a view, a rectangle of the canvas.
  draw(objects, camera, marks, view) {
    const { gl, uniforms } = this;
    uploadScene(gl, [...objects.flatMap(boxTexels), ...marks.flatMap(markTexels)]);
    gl.uniform1i(uniforms.boxes, objects.length);
    gl.uniform1i(uniforms.marks, marks.length);
    this.#choose(view);
    gl.uniformMatrix4fv(uniforms.view_projection, false, viewProjection(camera, view.width / view.height, NEAR, FAR));
    gl.uniform3fv(uniforms.eye, camera.eye);
    gl.uniform1i(uniforms.is_perspective, camera.viewHeight ? 0 : 1);
    this.#drawObjects(objects);
    this.#drawSurroundings(camera.eye);
  }

  #choose({ x, y, width, height }) {
    const { gl, canvas } = this;
    const scaleX = canvas.width / Math.max(canvas.clientWidth, 1), scaleY = canvas.height / Math.max(canvas.clientHeight, 1);
    const [left, right] = [x, x + width].map((side) => Math.round(side * scaleX));
    const [top, bottom] = [y, y + height].map((side) => canvas.height - Math.round(side * scaleY));
    for (const set of ["viewport", "scissor"]) gl[set](left, bottom, right - left, top - bottom);
  }

  #setLook(look) {
    const { gl, uniforms } = this;
    const colours = { ground: look.ground, background: look.background, eye_colour: look.eye, pupil_colour: look.pupil };
    for (const [name, colour] of Object.entries(colours)) gl.uniform3fv(uniforms[name], rgbOf(colour));
    gl.uniform3fv(uniforms.to_sun, normalize(look.to_sun));
    const numbers = { sun_light: look.sun, sun_radius: look.sun_radius, sky_light: look.sky, bounce_light: look.bounce,
      corner_reach: look.corner_reach };
    for (const [name, number] of Object.entries(numbers)) gl.uniform1f(uniforms[name], number);
  }

  #fitCanvas() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight].map((side) => Math.round(side * ratio));
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
  }

  #drawObjects(objects) {
    const { gl, uniforms } = this;
    gl.uniform1i(uniforms.surface, SURFACE.THING);
    objects.forEach(({ kind, colour, pressed, centre, rotation, half }, number) => {
      const isAgent = kind === KINDS.AGENT;
      gl.uniform1i(uniforms.own, number);
      gl.uniform1i(uniforms.is_mesh, isAgent ? 1 : 0);
      gl.uniform3fv(uniforms.colour, rgbOf(colour));
      gl.uniform1f(uniforms.bevel, this.bevels[kind] || 0);
      gl.uniform1f(uniforms.shine, pressed ? this.look.pressed_shine : 0);
      this.#place(centre, rotation, half);
      drawMesh(gl, isAgent ? this.agent : this.box, gl.TRIANGLES);
    });
  }

  // The floor, which ends beyond the range of sight, and the sky, which is a box around everything.
  #drawSurroundings(eye) {
    const { gl, uniforms } = this;
    gl.uniform1i(uniforms.own, -1);
    gl.uniform1f(uniforms.shine, 0);
    gl.uniform1i(uniforms.surface, SURFACE.FLOOR);
    this.#place([eye[0], eye[1], 0], UNTURNED, [FAR, FAR, 1]);
    drawMesh(gl, this.floor, gl.TRIANGLE_STRIP);
    gl.uniform1i(uniforms.surface, SURFACE.SKY);
    this.#place(eye, UNTURNED, [FAR / 2, FAR / 2, FAR / 2]);
    drawMesh(gl, this.box, gl.TRIANGLES);
  }

  #place(centre, rotation, half) {
    const axes = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].flatMap((axis) => rotate(rotation, axis));
    this.gl.uniformMatrix4fv(this.uniforms.placement, false, placement(centre, rotation, half));
    this.gl.uniformMatrix3fv(this.uniforms.normal_axes, false, axes);
    this.gl.uniform3fv(this.uniforms.half_extents, half);
  }
}

// ---- The texture of the scene

function boxTexels({ kind, centre, rotation: [w, x, y, z], half }) {
  const radius = kind === KINDS.AGENT ? (1 - AGENT_CORE) * Math.min(...half) : 0;
  return [...centre, radius, ...half.map((side) => side - radius), Math.max(half[0], half[1]), x, y, z, w];
}

// {shape, x, y, halfX, halfY, colour, opacity, lineWidth, linePeriod}
function markTexels({ shape, x, y, halfX, halfY, colour, opacity = 1, lineWidth = 0, linePeriod = 1 }) {
  return [x, y, halfX, halfY, shape, lineWidth, linePeriod, 0, ...rgbOf(colour), opacity, 0, 0, 0, 0];
}

function makeSceneTexture(gl) {
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  return texture;
}

function uploadScene(gl, numbers) {
  const width = 64, height = Math.ceil(numbers.length / (4 * width));
  const texels = new Float32Array(4 * width * height);
  texels.set(numbers);
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, width, height, 0, gl.RGBA, gl.FLOAT, texels);
}

const rgbOf = (colour) => [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16) / 255);
const floorCorner = (x, y) => [x, y, 0, 0, 0, 1, 0];

function linkProgram(gl) {
  const program = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, VERTEX_SHADER], [gl.FRAGMENT_SHADER, FRAGMENT_SHADER]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  return program;
}

function uploadMesh(gl, corners) {
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, corners, gl.STATIC_DRAW);
  const bytes = 7 * Float32Array.BYTES_PER_ELEMENT;
  [[3, 0], [3, 12], [1, 24]].forEach(([count, offset], location) => {
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, count, gl.FLOAT, false, bytes, offset);
  });
  return { array, corners: corners.length / 7 };
}

function drawMesh(gl, { array, corners }, mode) {
  gl.bindVertexArray(array);
  gl.drawArrays(mode, 0, corners);
}
