// The page: its state, and the actions of the mouse and the keys.

const STEP_SECONDS = 0.04;
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];
const CAMERAS = ["top", "follow", "free"];
const TURN_PER_PIXEL = 0.006, MOVE_PER_KEY = 0.03, ZOOM_PER_NOTCH = 1.1;
const element = (id) => document.getElementById(id);

class Player {
  constructor(recording, renderer) {
    this.recording = recording;
    this.renderer = renderer;
    this.free = new FreeCamera(recording.bounds);
    this.time = 0; // in moments
    this.playing = false;
    this.followed = null; // null: the agent that got furthest
    fill(element("speed"), SPEEDS.map((speed) => [speed, `${speed}x`]), 1);
    fill(element("camera"), CAMERAS.map((name) => [name, name]), "top");
    fill(element("world"), recording.worlds.map(({ world }, index) => [index, world]), 0);
    this.#listen();
    this.obeyAddress();
  }

  get world() {
    return this.recording.worlds[element("world").value];
  }

  get last() {
    return this.world.moments - 1;
  }

  get moment() {
    return Math.floor(this.time);
  }

  // "#world=2&moment=30&camera=follow&play" in the address.
  obeyAddress() {
    const wishes = new URLSearchParams(location.hash.slice(1));
    const index = this.recording.worlds.findIndex(({ world }) => String(world) === wishes.get("world"));
    if (index >= 0) element("world").value = index;
    if (CAMERAS.includes(wishes.get("camera"))) element("camera").value = wishes.get("camera");
    this.playing = wishes.has("play");
    this.seek(Number(wishes.get("moment")) || 0);
  }

  seek(time) {
    this.time = Math.min(Math.max(time, 0), this.last);
    this.redraw();
  }

  stepBy(count) {
    this.playing = false;
    this.seek(this.moment + count);
  }

  togglePlay() {
    this.playing = !this.playing;
    this.seek(this.playing && this.moment === this.last ? 0 : this.playing ? this.time : this.moment);
  }

  // Draws once per animation frame, however many calls there are, and continues while playing.
  redraw() {
    this.frame ??= requestAnimationFrame((now) => {
      this.frame = null;
      this.#advance(now);
      this.#draw();
      if (this.playing) this.redraw();
    });
  }

  #advance(now) {
    if (this.playing && this.drawnAt) {
      this.time += ((now - this.drawnAt) / 1000 / STEP_SECONDS) * Number(element("speed").value);
      if (this.time >= this.last) [this.time, this.playing] = [this.last, false];
    }
    this.drawnAt = this.playing ? now : null;
  }

  #draw() {
    const objects = objectsAt(this.recording, this.world, this.time);
    const agent = this.followed ?? this.world.furthest[this.moment];
    const marks = marksOf(objects, this.world, this.moment, this.recording.look);
    this.renderer.draw(objects, this.#camera(objects, agent), marks);
    this.#write(objects, agent);
  }

  #camera(objects, agent) {
    const name = element("camera").value;
    if (name === "top") return topCamera(this.recording.bounds, this.renderer.aspect);
    return name === "follow" ? followCamera(objects, agent) : this.free.camera();
  }

  #write(objects, agent) {
    const { world, moment } = this;
    element("play").textContent = this.playing ? "Pause" : "Play";
    element("scrub").max = this.last;
    element("scrub").value = moment;
    element("count").textContent = `${moment} / ${this.last}`;
    element("moment").textContent =
      `World ${world.world}, episode ${world.episodes[moment]}, step ${world.episodeSteps[moment]}`;
    const agents = Array.from({ length: this.recording.agents }, (_, index) => index);
    const rows = agents.map((index) => this.#row(objects, index, index === agent));
    element("agents").replaceChildren(...rows);
  }

  #row(objects, index, followed) {
    const at = this.moment * this.recording.agents + index;
    const { centre, colour } = objects.find((object) => object.index === index);
    const row = document.createElement("tr"), swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = colour;
    const texts = [centre[1].toFixed(1), this.world.rewards[at].toFixed(3), this.world.returns[at].toFixed(2),
      this.world.grabs[at] >= 0 ? "holds a cube" : ""];
    row.append(...[`agent ${index}`, ...texts].map((text) => {
      const cell = document.createElement("td");
      cell.textContent = text;
      return cell;
    }));
    row.firstChild.prepend(swatch);
    row.classList.toggle("followed", followed && element("camera").value === "follow");
    row.addEventListener("pointerdown", () => this.#follow(index));
    return row;
  }

  #follow(agent) {
    this.followed = agent;
    element("camera").value = "follow";
    this.redraw();
  }

  #listen() {
    element("play").addEventListener("click", () => this.togglePlay());
    element("scrub").addEventListener("input", () => {
      this.playing = false;
      this.seek(Number(element("scrub").value));
    });
    element("world").addEventListener("change", () => this.seek(this.time));
    element("camera").addEventListener("change", () => {
      this.followed = null;
      this.redraw();
    });
    window.addEventListener("hashchange", () => this.obeyAddress());
    window.addEventListener("resize", () => this.redraw());
    window.addEventListener("keydown", (event) => this.#press(event));
    this.#listenToMouse(element("view"));
  }

  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement) return;
    if (event.target instanceof HTMLButtonElement && event.key === " ") return; // clicks it
    const stride = event.shiftKey ? 10 : 1;
    const actions = {
      " ": () => this.togglePlay(),
      arrowleft: () => this.stepBy(-stride),
      arrowright: () => this.stepBy(stride),
      home: () => this.stepBy(-Infinity),
      end: () => this.stepBy(Infinity),
      1: () => this.#show("top"),
      2: () => this.#show("follow"),
      3: () => this.#show("free"),
      w: () => this.#fly((free) => free.move(0, MOVE_PER_KEY)),
      s: () => this.#fly((free) => free.move(0, -MOVE_PER_KEY)),
      a: () => this.#fly((free) => free.move(-MOVE_PER_KEY, 0)),
      d: () => this.#fly((free) => free.move(MOVE_PER_KEY, 0)),
    };
    const action = actions[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  }

  #show(camera) {
    element("camera").value = camera;
    this.followed = null;
    this.redraw();
  }

  // The mouse on the picture selects the camera that it moves.
  #fly(change) {
    change(this.free);
    this.#show("free");
  }

  #listenToMouse(canvas) {
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      if (!event.buttons) return;
      const slides = event.shiftKey || event.buttons !== 1, reach = canvas.clientHeight;
      this.#fly((free) =>
        slides
          ? free.move(-event.movementX / reach, event.movementY / reach)
          : free.turn(-event.movementX * TURN_PER_PIXEL, event.movementY * TURN_PER_PIXEL),
      );
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.#fly((free) => free.zoom(ZOOM_PER_NOTCH ** Math.sign(event.deltaY)));
      },
      { passive: false },
    );
  }
}

function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
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
