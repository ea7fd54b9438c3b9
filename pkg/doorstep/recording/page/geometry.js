// Vectors are arrays of 3, quaternions (w, x, y, z), matrices arrays of 16 by columns.

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const subtract = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const scale = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const normalize = (a) => scale(a, 1 / Math.hypot(...a));

function rotate([w, x, y, z], v) {
  const t = scale(cross([x, y, z], v), 2);
  return add(add(v, scale(t, w)), cross([x, y, z], t));
}

function multiply(a, b) {
  const product = new Float32Array(16);
  for (let column = 0; column < 4; ++column)
    for (let row = 0; row < 4; ++row)
      for (let i = 0; i < 4; ++i) product[4 * column + row] += a[4 * i + row] * b[4 * column + i];
  return product;
}

// From the frame of a mesh, whose box has the half extents 1, to the world.
function placement(centre, rotation, half) {
  const x = scale(rotate(rotation, [1, 0, 0]), half[0]);
  const y = scale(rotate(rotation, [0, 1, 0]), half[1]);
  const z = scale(rotate(rotation, [0, 0, 1]), half[2]);
  return [...x, 0, ...y, 0, ...z, 0, ...centre, 1];
}

// A camera: {eye, right, forward, up} and either fov (degrees, vertical) or viewHeight (metres, orthographic).
function lookAt(eye, target, up = [0, 0, 1]) {
  const forward = normalize(subtract(target, eye));
  const right = normalize(cross(forward, up));
  return { eye, right, forward, up: cross(right, forward) };
}

function viewProjection(camera, aspect, near, far) {
  const { eye, right, forward, up } = camera;
  const view = [];
  for (let axis = 0; axis < 3; ++axis) view.push(right[axis], up[axis], -forward[axis], 0);
  view.push(-dot(right, eye), -dot(up, eye), dot(forward, eye), 1);
  return multiply(projection(camera, aspect, near, far), view);
}

function projection(camera, aspect, near, far) {
  const matrix = new Float32Array(16);
  if (camera.viewHeight) {
    matrix[5] = 2 / camera.viewHeight;
    matrix[10] = -2 / (far - near);
    matrix[14] = -(far + near) / (far - near);
    matrix[15] = 1;
  } else {
    matrix[5] = 1 / Math.tan((camera.fov * Math.PI) / 360);
    matrix[10] = -(far + near) / (far - near);
    matrix[11] = -1;
    matrix[14] = (-2 * far * near) / (far - near);
  }
  matrix[0] = matrix[5] / aspect;
  return matrix;
}
