// The page: its state, and what changes it.

const STEP_SECONDS = 0.04;
const LONGEST_FRAME = 0.25; // seconds: a page that was out of sight goes on where it was
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];
const ALL = "all";
const element = (id) => document.getElementById(id);

class Player {
  constructor(recording, renderer) {
    this.recording = recording;
    this.renderer = renderer;
    this.time = 0; // in moments
    this.playing = false;
    this.cameras = new Cameras(recording);
    this.side = new Side(recording, this);
    this.#fillControls();
    this.#listen();
    this.obeyAddress();
  }

  // The worlds that are shown: all, or one.
  get worlds() {
    const { worlds } = this.recording, chosen = element("world").value;
    return chosen === ALL ? worlds : [worlds[chosen]];
  }

  get last() {
    return lastOf(this.worlds);
  }

  get moment() {
    return Math.floor(this.time);
  }

  get speed() {
    return Number(element("speed").value);
  }

  // "#world=2&moment=30&camera=follow&play" in the address. Without a moment it plays from the start.
  obeyAddress() {
    const wishes = new URLSearchParams(location.hash.slice(1));
    const index = this.recording.worlds.findIndex(({ world }) => String(world) === wishes.get("world"));
    if (index >= 0) element("world").value = index;
    if (CAMERAS.includes(wishes.get("camera"))) this.show(wishes.get("camera"));
    this.#showWorlds();
    this.pause(Number(wishes.get("moment")) || 0);
    if (wishes.has("play") || !(wishes.has("moment") || matchMedia("(prefers-reduced-motion: reduce)").matches))
      whenSeen(this.renderer.canvas, () => this.playing || this.togglePlay());
  }

  pause(moment) {
    this.playing = false;
    this.#seek(moment);
  }

  togglePlay() {
    this.playing = !this.playing;
    this.#seek(this.playing && this.moment === this.last ? 0 : this.playing ? this.time : this.moment);
  }

  show(camera) {
    element("camera").value = camera;
    if (camera === "free" && this.cameras.name !== "free") this.cameras.free = this.camera && new FreeCamera(this.camera);
    if (camera === "follow" && this.cameras.name !== "follow") this.cameras.jump();
    Object.assign(this.cameras, { name: camera, agent: null });
    this.redraw();
  }

  follow(agent) {
    this.show("follow");
    this.cameras.agent = agent;
  }

  // The mouse on the picture takes over the camera.
  fly(change) {
    if (this.cameras.name !== "free") this.show("free");
    change(this.cameras.free);
    this.redraw();
  }

  showAll() {
    element("world").value = this.recording.worlds.length > 1 ? ALL : 0;
    this.#showWorlds();
  }

  // Of several worlds, shows the one at a point of the canvas.
  showWorldAt(x, y) {
    const at = this.views.findIndex((view) => Math.abs(x - view.x - view.width / 2) < view.width / 2
      && Math.abs(y - view.y - view.height / 2) < view.height / 2);
    if (this.worlds.length === 1 || at < 0) return;
    element("world").value = at;
    this.#showWorlds();
  }

  // Draws once per animation frame, however many calls there are, and goes on while something moves.
  redraw() {
    this.frame ??= requestAnimationFrame((now) => {
      this.frame = null;
      const moves = this.playing || this.cameras.moves;
      const seconds = moves && this.drawnAt ? Math.min((now - this.drawnAt) / 1000, LONGEST_FRAME) : 0;
      this.drawnAt = moves ? now : null;
      if (this.playing) this.#advance(seconds);
      this.#draw(seconds);
      if (this.playing || this.cameras.moves) this.redraw();
    });
  }

  #seek(moment) {
    this.time = Math.min(Math.max(moment, 0), this.last);
    if (Math.abs(this.time - this.drawnTime) > 1) this.cameras.jump();
    this.redraw();
  }

  #advance(seconds) {
    this.time += (seconds / STEP_SECONDS) * this.speed;
    if (this.time >= this.last) [this.time, this.playing] = [this.last, false];
  }

  #draw(seconds) {
    const { clientWidth, clientHeight } = this.renderer.canvas;
    this.views = rowsOfViews(this.worlds.length, clientWidth, clientHeight);
    this.renderer.begin();
    this.worlds.forEach((world, index) => this.#drawWorld(world, this.views[index], seconds * Math.max(this.speed, 1)));
    this.#drawNames();
    this.#writeControls();
    this.side.draw(this.time);
    this.drawnTime = this.time;
  }

  #drawWorld(world, view, seconds) {
    const time = Math.min(this.time, world.last), moment = Math.floor(time);
    if (world.drawnEpisode !== world.episodes[moment]) this.cameras.followers.get(world).jump();
    world.drawnEpisode = world.episodes[moment];
    const objects = objectsAt(this.recording, world, time);
    this.camera = this.cameras.of(world, objects, moment, view.width / Math.max(view.height, 1), seconds);
    this.renderer.draw(objects, this.camera, marksOf(objects, world, moment, this.recording.look), view);
  }

  // The names of several worlds, and a border around those whose agents are out.
  #drawNames() {
    const names = this.worlds.length > 1 ? [...element("names").children] : [];
    names.forEach((name, index) => {
      const { x, y, width, height } = this.views[index], world = this.worlds[index];
      Object.assign(name.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
      name.classList.toggle("out", world.out[Math.min(this.moment, world.last)] === 1);
    });
  }

  #writeControls() {
    element("play").textContent = this.playing ? "Pause" : "Play";
    element("scrub").max = this.last;
    element("scrub").value = this.moment;
    element("count").textContent = `${this.moment} / ${this.last}`;
  }

  #showWorlds() {
    const { worlds } = this;
    this.side.show(worlds);
    element("names").replaceChildren(...(worlds.length > 1 ? worlds : []).map(({ name }) => {
      const box = document.createElement("div"), text = document.createElement("span");
      text.textContent = name;
      box.append(text);
      return box;
    }));
    this.cameras.jump();
    this.cameras.free = null;
    this.#seek(this.time);
  }

  #fillControls() {
    const worlds = this.recording.worlds.map(({ name }, index) => [index, name]);
    fill(element("speed"), SPEEDS.map((speed) => [speed, `${speed}x`]), 1);
    fill(element("camera"), CAMERAS.map((name) => [name, name]), this.cameras.name);
    fill(element("world"), worlds.length > 1 ? [[ALL, "all worlds"], ...worlds] : worlds, worlds.length > 1 ? ALL : 0);
    element("world").parentNode.hidden = worlds.length === 1;
  }

  #listen() {
    element("play").addEventListener("click", () => this.togglePlay());
    element("scrub").addEventListener("input", () => this.pause(Number(element("scrub").value)));
    element("world").addEventListener("change", () => this.#showWorlds());
    element("camera").addEventListener("change", () => this.show(element("camera").value));
    window.addEventListener("hashchange", () => this.obeyAddress());
    new ResizeObserver(() => this.redraw()).observe(this.renderer.canvas);
    listenToKeys(this);
    listenToMouse(this.renderer.canvas, this);
  }
}

function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

// Calls back once, as soon as an element is on the screen.
function whenSeen(shown, act) {
  new IntersectionObserver((entries, observer) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    observer.disconnect();
    act();
  }).observe(shown);
}

function complain(text) {
  element("trouble").textContent = text;
  element("trouble").hidden = false;
}

async function start() {
  if (typeof DecompressionStream === "undefined")
    return complain("This browser cannot unpack the recording: it has no DecompressionStream. A newer one can.");
  const recording = await readRecording(element("recording").textContent);
  const renderer = Renderer.create(element("view"), recording.look);
  if (!renderer)
    return complain("This browser cannot draw the recording: WebGL2 is missing or switched off.");
  new Player(recording, renderer);
}

start().catch((error) => complain(`The recording cannot be shown: ${error.message}`));
