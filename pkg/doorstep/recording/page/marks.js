// What lies on the floor of a world, in the order in which it is painted.

function marksOf(objects, world, moment, look) {
  const level = bounds(objects.filter(isStatic));
  const goal = world.goals.slice(4 * moment, 4 * moment + 4);
  const agents = objects.filter(({ kind }) => kind === KINDS.AGENT);
  const discs = agents.map((agent) => around(agent, MARK.DISC, look.disc_radius, look.disc_opacity));
  return [
    ...(level ? [{ ...between(level, MARK.RECTANGLE), colour: look.floor },
      { ...between(level, MARK.GRID), colour: look.grid, lineWidth: look.grid_width, linePeriod: look.grid_period }] : []),
    { ...between(goal, MARK.STRIPES), colour: look.goal, opacity: look.goal_opacity, lineWidth: look.stripe_width,
      linePeriod: look.stripe_period },
    ...objects.filter(isOpenDoor).map(({ centre: [x, y], half: [halfX, halfY] }) => (
      { shape: MARK.RECTANGLE, x, y, halfX, halfY, colour: look.open })),
    ...objects.filter(({ pressed }) => pressed).map((button) => around(button, MARK.GLOW, look.glow_radius, look.glow_opacity)),
    ...discs,
    ...discs.map((disc) => ({ ...disc, opacity: 1, lineWidth: look.disc_ring })),
  ];
}

// An open door is below the floor, or on its way there.
const isOpenDoor = ({ kind, centre, half }) => kind === KINDS.DOOR && centre[2] - half[2] < -0.01;

const between = ([left, bottom, right, top], shape) => ({ shape, x: (left + right) / 2, y: (bottom + top) / 2,
  halfX: (right - left) / 2, halfY: (top - bottom) / 2 });

const around = ({ centre: [x, y], colour }, shape, radius, opacity) => (
  { shape, x, y, halfX: radius, halfY: radius, colour, opacity });

// The rectangle around boxes: left, bottom, right, top; null without boxes.
function bounds(boxes) {
  if (!boxes.length) return null;
  const sides = (axis, sign) => boxes.map(({ centre, half }) => centre[axis] + sign * half[axis]);
  return [Math.min(...sides(0, -1)), Math.min(...sides(1, -1)), Math.max(...sides(0, 1)), Math.max(...sides(1, 1))];
}
