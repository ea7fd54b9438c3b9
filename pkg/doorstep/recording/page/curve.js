// The curves of the returns, with a cursor at the present moment.

const CURVE_MARGIN = 6; // pixels around the curves

// The return of each agent of a world, or, of several worlds, the mean over the agents of each.
// -> [{colour, width, points: [[moment, return], ...], dot}]; episodes are separated by null, the dot is where a world's
// agents are out.
function curvesOf(worlds, agents, look) {
  const each = Array.from({ length: agents }, (_, agent) => agent);
  if (worlds.length === 1)
    return each.map((agent) => (
      { colour: look.agents[agent % look.agents.length], width: 1.8, points: curveOf(worlds[0], [agent]) }));
  return worlds.map((world) => {
    const points = curveOf(world, each), out = world.out.indexOf(1);
    return { colour: look.muted, width: 0.8, points, dot: points.findLast((point) => point && point[0] === out) };
  });
}

function curveOf(world, shown) {
  const stride = world.returns.length / world.moments, points = [];
  const mean = (values, moment) => shown.reduce((sum, agent) => sum + values[moment * stride + agent], 0) / shown.length;
  for (let moment = 0; moment < world.moments; ++moment) {
    if (moment && world.episodes[moment] !== world.episodes[moment - 1]) points.push(null);
    const value = mean(world.returns, moment);
    points.push([moment, value], [moment, value + mean(world.finalRewards, moment)]);
  }
  return points;
}

class Curve {
  // seek: is given the moment that was pointed at.
  constructor(canvas, look, seek) {
    this.canvas = canvas;
    this.look = look;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      seek(this.#momentAt(event));
    });
    canvas.addEventListener("pointermove", (event) => event.buttons && seek(this.#momentAt(event)));
  }

  show(curves, moments, last) {
    const returns = curves.flatMap(({ points }) => points.filter(Boolean).map(([, value]) => value));
    [this.low, this.high] = [Math.min(0, ...returns), Math.max(0.1, ...returns)];
    Object.assign(this, { curves, moments, last });
  }

  // time: the moment of the cursor.
  draw(time) {
    const { canvas, look } = this, ratio = window.devicePixelRatio || 1;
    [this.width, this.height] = [canvas.clientWidth, canvas.clientHeight];
    const size = [this.width, this.height].map((side) => Math.round(side * ratio));
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    for (const moment of this.moments) this.#line(pen, look.border, 1, [[moment, this.low], [moment, this.high]]);
    this.#line(pen, look.border, 1, [[0, 0], [this.last, 0]]);
    for (const { colour, width, points } of this.curves) this.#line(pen, colour, width, points);
    for (const { dot } of this.curves) if (dot) this.#dot(pen, look.open, dot);
    this.#line(pen, look.text, 1, [[time, this.low], [time, this.high]]);
    this.#label(pen);
  }

  #x(moment) {
    return CURVE_MARGIN + (moment / Math.max(this.last, 1)) * (this.width - 2 * CURVE_MARGIN);
  }

  #y(value) {
    return CURVE_MARGIN + ((this.high - value) / (this.high - this.low)) * (this.height - 2 * CURVE_MARGIN);
  }

  #momentAt({ offsetX }) {
    const share = (offsetX - CURVE_MARGIN) / (this.width - 2 * CURVE_MARGIN);
    return Math.round(Math.min(Math.max(share, 0), 1) * this.last);
  }

  #line(pen, colour, width, points) {
    pen.beginPath();
    let goesOn = false;
    for (const point of points) {
      if (point) pen[goesOn ? "lineTo" : "moveTo"](this.#x(point[0]), this.#y(point[1]));
      goesOn = point !== null;
    }
    Object.assign(pen, { strokeStyle: colour, lineWidth: width, lineJoin: "round" });
    pen.stroke();
  }

  #dot(pen, colour, [moment, value]) {
    pen.beginPath();
    pen.arc(this.#x(moment), this.#y(value), 3, 0, 2 * Math.PI);
    pen.fillStyle = colour;
    pen.fill();
  }

  #label(pen) {
    const font = `11px ${getComputedStyle(this.canvas).fontFamily}`;
    Object.assign(pen, { fillStyle: this.look.muted, font, textBaseline: "top" });
    pen.fillText(this.high.toFixed(1), CURVE_MARGIN, 2);
    if (this.low < 0) pen.fillText(this.low.toFixed(1), CURVE_MARGIN, this.height - 13);
  }
}
