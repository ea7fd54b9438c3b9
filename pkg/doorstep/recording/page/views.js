// Where the worlds are on the canvas, and through which cameras they are seen.

const CAMERAS = ["overview", "top", "follow", "free"];
const VIEW_ASPECT = 1.4; // of the views of several worlds, about

// Rectangles {x, y, width, height} for a number of views, in rows, as large as their shape allows.
function rowsOfViews(count, width, height) {
  let best = null;
  for (let columns = 1; columns <= count; ++columns) {
    const view = { columns, width: width / columns, height: height / Math.ceil(count / columns) };
    view.size = Math.min(view.width / VIEW_ASPECT, view.height);
    if (!best || view.size > best.size) best = view;
  }
  return Array.from({ length: count }, (_, index) => ({
    x: (index % best.columns) * best.width,
    y: Math.floor(index / best.columns) * best.height,
    width: best.width,
    height: best.height,
  }));
}

// The cameras of all worlds. What is followed is glided to, but after jump().
class Cameras {
  constructor(recording) {
    this.name = "overview";
    this.agent = null; // that is followed; null: the one that got furthest
    this.followers = new Map(recording.worlds.map((world) => [world, new FollowCamera()]));
    this.free = null;
  }

  get moves() {
    return this.name === "follow" && [...this.followers.values()].some(({ moves }) => moves);
  }

  jump() {
    for (const follower of this.followers.values()) follower.jump();
  }

  followed(world, moment) {
    return this.agent ?? world.furthest[moment];
  }

  of(world, objects, moment, aspect, seconds) {
    if (this.name === "free") return (this.free ??= new FreeCamera(overviewCamera(world.box, aspect))).camera();
    if (this.name === "top") return topCamera(world.bounds, aspect);
    if (this.name === "overview") return overviewCamera(world.box, aspect);
    return this.followers.get(world).camera(objects, this.followed(world, moment), seconds);
  }
}
