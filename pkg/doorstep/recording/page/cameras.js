// Cameras: those of Simulator.render, and one that the mouse moves.

const TOP_MARGIN = 1.04, TOP_ALTITUDE = 200;
const FOLLOW_OFFSET = [0, -9, 10], FOLLOW_AHEAD = [0, 2.5, 0], FOLLOW_FOV = 55, FREE_FOV = 55;
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

// Behind an agent, along the level, and above. Walls that hide the agent are cut down.
function followCamera(objects, agent) {
  const agentObject = objects.find((object) => object.index === agent);
  const { centre, half } = agentObject;
  const foot = subtract(centre, [0, 0, half[2]]);
  const eye = add(foot, FOLLOW_OFFSET);
  const points = [centre, ...nearCorners(agentObject)];
  for (const object of objects)
    if (isStatic(object) && points.some((point) => isBetween(object, eye, point))) cutDown(object);
  return { ...lookAt(eye, add(foot, FOLLOW_AHEAD)), fov: FOLLOW_FOV };
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
  constructor([left, bottom, right, top]) {
    this.target = [(left + right) / 2, (bottom + top) / 2, 0];
    this.distance = 1.15 * Math.max(right - left, top - bottom);
    this.azimuth = -0.6;
    this.elevation = 0.75;
  }

  camera() {
    return { ...lookAt(add(this.target, scale(this.#back(), this.distance)), this.target), fov: FREE_FOV };
  }

  turn(right, up) {
    this.azimuth += right;
    this.elevation = Math.min(Math.max(this.elevation + up, 0.03), 1.56);
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
