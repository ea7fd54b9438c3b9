// Draws boxes, agents and the floor with WebGL2: a shadow map seen from the light, then the picture. Colours, light and
// the floor's grid are those of doorstep's own pictures.

const COLOURS = {
  [KINDS.BUTTON]: [230 / 255, 230 / 255, 20 / 255],
  [KINDS.CUBE]: [191 / 255, 108 / 255, 10 / 255],
  [KINDS.WALL]: [0.4, 0.4, 0.4],
  [KINDS.DOOR]: [230 / 255, 20 / 255, 20 / 255],
};
const SURFACE = { THING: 0, FLOOR: 1, SKY: 2 };
const UNTURNED = [1, 0, 0, 0];
const TO_LIGHT = normalize([-1, -1, 2]);
const SHADOW_MAP_SIDE = 2048, SHADOW_MARGIN = 4;
const NEAR = 0.1, FAR = 2000;

const VERTEX_SHADER = `#version 300 es
uniform mat4 placement, view_projection, light_projection;
uniform mat3 normal_axes;
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in float material;
out vec3 place, towards;
out vec4 light_place;
flat out float is_eye;
void main() {
  vec4 world = placement * vec4(position, 1.0);
  place = world.xyz;
  towards = normal_axes * normal;
  light_place = light_projection * world;
  is_eye = material;
  gl_Position = view_projection * world;
}`;

const FRAGMENT_SHADER = `#version 300 es
precision highp float;
precision highp sampler2DShadow;
uniform vec3 colour, to_light, eye;
uniform int surface;
uniform bool is_perspective;
uniform sampler2DShadow shadow_map;
in vec3 place, towards;
in vec4 light_place;
flat in float is_eye;
out vec4 shown;

const int kFloorSurface = 1, kSkySurface = 2;
const vec3 kEye = vec3(0.08, 0.10, 0.14), kFloor = vec3(0.30, 0.34, 0.26), kLine = vec3(0.50, 0.56, 0.42);
const vec3 kSky = vec3(0.62, 0.76, 0.90), kZenith = vec3(0.32, 0.52, 0.78);
const float kCell = 2.0, kLineWidth = 0.1, kHazeBegins = 60.0, kHazeEnds = 260.0;

float line_coverage(float coordinate, float width) {
  float half_line = 0.5 * kLineWidth / kCell, u = coordinate / kCell, w = clamp(width / kCell, 1e-6, 1.0);
  float from_line = abs(u - round(u)), low = from_line - 0.5 * w, high = from_line + 0.5 * w;
  float this_line = max(min(high, half_line) - max(low, -half_line), 0.0);
  return (this_line + max(high - (1.0 - half_line), 0.0)) / w;
}

vec3 floor_colour() {
  vec2 footprint = abs(dFdx(place.xy)) + abs(dFdy(place.xy));
  float across_x = line_coverage(place.x, footprint.x), across_y = line_coverage(place.y, footprint.y);
  return mix(kFloor, kLine, across_x + across_y - across_x * across_y);
}

float visibility() {
  vec3 at = light_place.xyz * 0.5 + 0.5;
  bool outside = any(lessThan(at, vec3(0.0))) || any(greaterThan(at, vec3(1.0)));
  return outside ? 1.0 : texture(shadow_map, at);
}

vec3 lit(vec3 base) {
  vec3 unit = normalize(towards);
  return base * (0.45 + 0.10 * unit.z + 0.45 * visibility() * max(dot(unit, to_light), 0.0));
}

vec3 in_haze(vec3 near) {
  float haze = clamp((distance(place, eye) - kHazeBegins) / (kHazeEnds - kHazeBegins), 0.0, 1.0);
  return is_perspective ? mix(near, kSky, haze * (2.0 - haze)) : near;
}

vec3 sky_colour() {
  return mix(kSky, kZenith, max(normalize(place - eye).z, 0.0));
}

void main() {
  shown.a = 1.0;
  shown.rgb = surface == kSkySurface ? sky_colour()
      : surface == kFloorSurface ? in_haze(lit(floor_colour()))
      : lit(mix(colour, kEye, is_eye));
}`;

class Renderer {
  // Null where the browser has no WebGL2.
  static create(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true });
    return gl && new Renderer(canvas, gl);
  }

  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    this.program = linkProgram(gl);
    this.uniforms = new Proxy({}, { get: (_, name) => gl.getUniformLocation(this.program, name) });
    this.box = uploadMesh(gl, boxMesh());
    this.agent = uploadMesh(gl, agentMesh());
    this.floor = uploadMesh(gl, new Float32Array([...floorCorner(-1, -1), ...floorCorner(1, -1), ...floorCorner(-1, 1),
      ...floorCorner(1, 1)]));
    this.shadow = makeShadowMap(gl);
    gl.useProgram(this.program);
    gl.enable(gl.DEPTH_TEST);
    gl.uniform3fv(this.uniforms.to_light, TO_LIGHT);
  }

  get aspect() {
    return this.canvas.clientWidth / Math.max(this.canvas.clientHeight, 1);
  }

  draw(objects, camera, bounds, tints) {
    const { gl, uniforms } = this;
    this.#fitCanvas();
    const lightProjection = projectionFromLight(bounds);
    gl.uniformMatrix4fv(uniforms.light_projection, false, lightProjection);
    this.#drawShadowMap(objects, lightProjection, tints);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.bindTexture(gl.TEXTURE_2D, this.shadow.texture);
    gl.uniformMatrix4fv(uniforms.view_projection, false, viewProjection(camera, this.aspect, NEAR, FAR));
    gl.uniform3fv(uniforms.eye, camera.eye);
    gl.uniform1i(uniforms.is_perspective, camera.viewHeight ? 0 : 1);
    this.#drawSurroundings(camera.eye);
    this.#drawObjects(objects, tints);
  }

  #fitCanvas() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight].map((side) => Math.round(side * ratio));
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
  }

  #drawShadowMap(objects, lightProjection, tints) {
    const { gl, uniforms } = this;
    gl.bindTexture(gl.TEXTURE_2D, null); // a texture that is drawn to is not read
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadow.framebuffer);
    gl.viewport(0, 0, SHADOW_MAP_SIDE, SHADOW_MAP_SIDE);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(2, 4);
    gl.uniformMatrix4fv(uniforms.view_projection, false, lightProjection);
    this.#drawObjects(objects, tints);
    gl.disable(gl.POLYGON_OFFSET_FILL);
  }

  #drawObjects(objects, tints) {
    const { gl, uniforms } = this;
    gl.uniform1i(uniforms.surface, SURFACE.THING);
    for (const { kind, index, hidden, centre, rotation, half } of objects) {
      if (hidden) continue;
      const mesh = kind === KINDS.AGENT ? this.agent : this.box;
      gl.uniform3fv(uniforms.colour, kind === KINDS.AGENT ? tints[index] : COLOURS[kind]);
      this.#place(placement(centre, rotation, half), rotation);
      drawMesh(gl, mesh, gl.TRIANGLES);
    }
  }

  // The floor, which ends beyond the range of sight, and the sky, which is a box around everything.
  #drawSurroundings(eye) {
    const { gl, uniforms } = this;
    gl.uniform1i(uniforms.surface, SURFACE.FLOOR);
    this.#place(placement([eye[0], eye[1], 0], UNTURNED, [FAR, FAR, 1]), UNTURNED);
    drawMesh(gl, this.floor, gl.TRIANGLE_STRIP);
    gl.uniform1i(uniforms.surface, SURFACE.SKY);
    this.#place(placement(eye, UNTURNED, [FAR / 2, FAR / 2, FAR / 2]), UNTURNED);
    drawMesh(gl, this.box, gl.TRIANGLES);
  }

  #place(matrix, rotation) {
    const axes = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].flatMap((axis) => rotate(rotation, axis));
    this.gl.uniformMatrix4fv(this.uniforms.placement, false, matrix);
    this.gl.uniformMatrix3fv(this.uniforms.normal_axes, false, axes);
  }
}

const floorCorner = (x, y) => [x, y, 0, 0, 0, 1, 0];

// Parallel light on everything within the bounds and near above.
function projectionFromLight([left, bottom, right, top]) {
  const middle = [(left + right) / 2, (bottom + top) / 2, 0];
  const radius = Math.hypot(right - left, top - bottom) / 2 + SHADOW_MARGIN;
  const camera = { ...lookAt(add(middle, scale(TO_LIGHT, 2 * radius)), middle), viewHeight: 2 * radius };
  return viewProjection(camera, 1, radius / 2, 4 * radius);
}

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

function makeShadowMap(gl) {
  const texture = gl.createTexture(), framebuffer = gl.createFramebuffer();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, SHADOW_MAP_SIDE, SHADOW_MAP_SIDE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.LINEAR);
  gl.bindFramebuffer(gl.FRAMEBUFFER, framebuffer);
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, texture, 0);
  return { texture, framebuffer };
}
