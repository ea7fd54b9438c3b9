// Meshes in a box with the half extents 1, as triangles: per corner position, normal, material (0: body, 1: eye, 2: pupil).

// Calls emit(corner of a cube, axis, side) for the triangles of a cube whose sides are grids of squares, outwards.
function forEachCubeCorner(grid, emit) {
  const square = [[0, 0], [1, 0], [1, 1], [0, 0], [1, 1], [0, 1]];
  for (let axis = 0; axis < 3; ++axis)
    for (const side of [-1, 1]) {
      const u = (axis + (side > 0 ? 1 : 2)) % 3, v = 3 - axis - u;
      for (let i = 0; i < grid * grid; ++i)
        for (const [du, dv] of square) {
          const corner = [0, 0, 0];
          corner[axis] = side;
          corner[u] = (2 * ((i % grid) + du)) / grid - 1;
          corner[v] = (2 * (Math.floor(i / grid) + dv)) / grid - 1;
          emit(corner, axis, side);
        }
    }
}

function boxMesh() {
  const mesh = [];
  forEachCubeCorner(1, (corner, axis, side) => {
    const normal = [0, 0, 0];
    normal[axis] = side;
    mesh.push(...corner, ...normal, 0);
  });
  return new Float32Array(mesh);
}

// A box with round edges below, a dome above, and two eyes in front.
function agentMesh() {
  const mesh = [];
  forEachCubeCorner(14, (corner) => mesh.push(...bodySurface(corner), 0));
  for (const eye of EYES)
    for (const side of [-1, 1]) forEachCubeCorner(6, (corner) => mesh.push(...eyeSurface(corner, eye, side), eye.material));
  return new Float32Array(mesh);
}

// Below z = 0: x^4 + y^4 + z^4 = 1; above: sqrt(x^4 + y^4) + z^2 = 1.
function bodySurface(direction) {
  const [x, y, z] = direction;
  if (z < 0) return [...scale(direction, (x ** 4 + y ** 4 + z ** 4) ** -0.25), ...normalize([x ** 3, y ** 3, z ** 3])];
  const outline = Math.sqrt(x ** 4 + y ** 4);
  if (outline === 0) return [0, 0, 1, 0, 0, 1];
  return [...scale(direction, (outline + z * z) ** -0.5), ...normalize([x ** 3 / outline, y ** 3 / outline, z])];
}

// Ellipsoids: of the right side.
const EYES = [
  { centre: [0.37, 0.71, 0.5], half: [0.27, 0.22, 0.31], material: 1 },
  { centre: [0.35, 0.85, 0.53], half: [0.15, 0.12, 0.19], material: 2 },
];

function eyeSurface(direction, { centre: [x, y, z], half }, side) {
  const centre = [x * side, y, z];
  const unit = normalize(direction);
  const offset = unit.map((component, axis) => component * half[axis]);
  return [...add(centre, offset), ...normalize(unit.map((component, axis) => component / half[axis]))];
}
