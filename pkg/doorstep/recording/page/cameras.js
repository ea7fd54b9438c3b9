// Cameras: those of Simulator.render, and one that the mouse moves.

const TOP_MARGIN = 1.04, TOP_ALTITUDE = 200;
const OVERVIEW_DIRECTIONS = [[0.66, -0.36, 1.2], [0.25, -0.75, 1.1]], OVERVIEW_FOV = 40, OVERVIEW_MARGIN = 1.04;
const FOLLOW_OFFSET = [0, -9, 10], FOLLOW_AHEAD = [0, 2.5, 0], FOLLOW_FOV = 55;
const FOLLOW_STIFFNESS = 6; // 1 / s: the camera is about 2 / 6 s behind an agent that walks
const FOLLOW_REST = 0.002; // metres, and metres a second: a camera that has arrived
const STEEPEST = 1.56; // elevation of a camera that turns, radians
const STUB = 0.2; // height of what remains of a wall that is cut down, metres

// Straight down on the whole level, which lies along the picture's longer side.
function topCamera([left, bottom, right, top], aspect) {
  const upright = Math.max(top - bottom, (right - left) / aspect);
  const lying = Math.max(right - left, (top - bottom) / aspect);
  const centre = [(left + right) / 2, (bottom + top) / 2, 0];
  const up = upright <= lying ? [0, 1, 0] : [-1, 0, 0];
  const camera = lookAt(add(centre, [0, 0, TOP_ALTITUDE]), centre, up);
  return { ...camera, viewHeight: TOP_MARGIN * Math.min(upright, lying) };
}

// Obliquely on a box {low, high corner}, as large as the picture allows: beside the level, or before its start.
function overviewCamera(box, aspect) {
  const middle = scale(add(...box), 0.5);
  const cameras = OVERVIEW_DIRECTIONS.map((direction) => nearestCamera(box, direction, aspect));
  const [beside, before] = cameras.map(({ eye }) => Math.hypot(...subtract(eye, middle)));
  return beside <= before ? cameras[0] : cameras[1];
}

// The nearest camera, in a direction from a box, that has all of it in the picture: see `_showing` in render/camera.py.
function nearestCamera([low, high], direction, aspect) {
  const corners = [0, 1, 2, 3, 4, 5, 6, 7].map((bits) => [0, 1, 2].map((axis) => (bits >> axis & 1 ? high : low)[axis]));
  const axes = lookAt(direction, [0, 0, 0]);
  const tangent = Math.tan((OVERVIEW_FOV * Math.PI) / 360) / OVERVIEW_MARGIN;
  let eye = [0, 0, 0], forward = Infinity;
  for (const [axis, slope] of [[axes.right, tangent * aspect], [axes.up, tangent]]) {
    const least = Math.max(...corners.map((corner) => dot(corner, axis) - slope * dot(corner, axes.forward)));
    const most = Math.min(...corners.map((corner) => dot(corner, axis) + slope * dot(corner, axes.forward)));
    eye = add(eye, scale(axis, (least + most) / 2));
    forward = Math.min(forward, (most - least) / (2 * slope));
  }
  return { ...axes, eye: add(eye, scale(axes.forward, forward)), fov: OVERVIEW_FOV };
}

// Behind an agent, along the level, and above, on a critically damped spring. Walls that hide the agent are cut down.
class FollowCamera {
  // The next agent is not glided to, but shown at once.
  jump() {
    this.place = null;
  }

  // seconds: since the last call.
  camera(objects, agent, seconds) {
    const agentObject = objects.find((object) => object.index === agent);
    this.#approach(subtract(agentObject.centre, [0, 0, agentObject.half[2]]), seconds);
    const eye = add(this.place, FOLLOW_OFFSET);
    const points = [agentObject.centre, ...nearCorners(agentObject)];
    for (const object of objects)
      if (isStatic(object) && points.some((point) => isBetween(object, eye, point))) cutDown(object);
    return { ...lookAt(eye, add(this.place, FOLLOW_AHEAD)), fov: FOLLOW_FOV };
  }

  // The exact motion of the spring, whatever the time between two pictures.
  #approach(target, seconds) {
    if (!this.place) [this.place, this.velocity] = [target, [0, 0, 0]];
    const offset = subtract(this.place, target), fading = Math.exp(-FOLLOW_STIFFNESS * seconds);
    const push = scale(add(this.velocity, scale(offset, FOLLOW_STIFFNESS)), seconds);
    this.place = add(target, scale(add(offset, push), fading));
    this.velocity = scale(subtract(this.velocity, scale(push, FOLLOW_STIFFNESS)), fading);
    this.moves = Math.hypot(...subtract(this.place, target)) + Math.hypot(...this.velocity) > FOLLOW_REST;
  }
}

// Points near the corners of a box: a wall that the box touches does not hide them.
function nearCorners({ centre, rotation, half }) {
  const signs = [0, 1, 2, 3, 4, 5, 6, 7].map((bits) => [bits & 1, bits & 2, bits & 4].map((bit) => (bit ? 0.9 : -0.9)));
  return signs.map((sign) => add(centre, rotate(rotation, sign.map((s, axis) => s * half[axis]))));
}

function cutDown(wall) {
  const bottom = wall.centre[2] - wall.half[2];
  wall.half = [wall.half[0], wall.half[1], STUB / 2];
  wall.centre = [wall.centre[0], wall.centre[1], bottom + STUB / 2];
}

const isStatic = ({ kind }) => kind === KINDS.WALL || kind === KINDS.DOOR;

// Whether the line from one point to another meets a box whose sides are parallel to the axes.
function isBetween({ centre, half }, from, to) {
  let enters = 0, leaves = 1;
  for (let axis = 0; axis < 3; ++axis) {
    const slope = to[axis] - from[axis] || Number.MIN_VALUE;
    const a = (centre[axis] - half[axis] - from[axis]) / slope, b = (centre[axis] + half[axis] - from[axis]) / slope;
    enters = Math.max(enters, Math.min(a, b));
    leaves = Math.min(leaves, Math.max(a, b));
  }
  return enters <= leaves;
}

// Turns around a point of the floor: {target, distance, azimuth, elevation}, angles in radians.
class FreeCamera {
  // Takes the place of another camera.
  constructor({ eye, forward, up, fov = OVERVIEW_FOV, viewHeight }) {
    const distance = viewHeight ? viewHeight / 2 / Math.tan((fov * Math.PI) / 360) : eye[2] / -forward[2];
    this.fov = fov;
    this.target = viewHeight ? [eye[0], eye[1], 0] : add(eye, scale(forward, distance));
    this.distance = distance;
    this.azimuth = Math.atan2(-up[0], up[1]);
    this.elevation = Math.min(Math.asin(-forward[2]), STEEPEST);
  }

  camera() {
    return { ...lookAt(add(this.target, scale(this.#back(), this.distance)), this.target), fov: this.fov };
  }

  turn(right, up) {
    this.azimuth += right;
    this.elevation = Math.min(Math.max(this.elevation + up, 0.03), STEEPEST);
  }

  // By parts of the distance: to the right and ahead over the floor.
  move(right, ahead) {
    const [sine, cosine] = [Math.sin(this.azimuth), Math.cos(this.azimuth)];
    const step = [right * cosine - ahead * sine, right * sine + ahead * cosine, 0];
    this.target = add(this.target, scale(step, this.distance));
  }

  zoom(factor) {
    this.distance = Math.min(Math.max(this.distance * factor, 2), 500);
  }

  #back() {
    const flat = Math.cos(this.elevation);
    return [Math.sin(this.azimuth) * flat, -Math.cos(this.azimuth) * flat, Math.sin(this.elevation)];
  }
}
