// The left side: what the moment is, the curves of the returns, the agents, and the events.

class Side {
  // player: is told what was chosen.
  constructor(recording, player) {
    this.recording = recording;
    this.player = player;
    this.curve = new Curve(element("curve"), recording.look, (moment) => player.pause(moment));
  }

  // worlds: those that are shown.
  show(worlds) {
    this.worlds = worlds;
    this.events = eventsOf(worlds);
    this.moment = null;
    const moments = worlds.length > 1 ? [] : this.events.map(({ moment }) => moment);
    this.curve.show(curvesOf(worlds, this.recording.agents, this.recording.look), moments, lastOf(worlds));
    element("curve-title").textContent = worlds.length > 1 ? "Return of each world" : "Return of each agent";
    element("agents").parentNode.hidden = worlds.length > 1;
    element("agents").replaceChildren(...(worlds.length > 1 ? [] : this.#rows()));
    element("events").replaceChildren(...this.events.map((event) => this.#item(event)));
  }

  draw(time) {
    this.curve.draw(time);
    const moment = Math.floor(time);
    const followed = this.player.cameras.name === "follow" && this.player.cameras.followed(this.worlds[0], this.#of(moment));
    if (moment === this.moment && followed === this.followed) return;
    [this.moment, this.followed] = [moment, followed];
    this.#tellMoment(moment);
    if (this.worlds.length === 1) this.#tellAgents(this.#of(moment));
    this.#tellEvents(moment);
  }

  // A world that has stopped stays at its last moment.
  #of(moment) {
    return Math.min(moment, this.worlds[0].last);
  }

  #tellMoment(moment) {
    const [world] = this.worlds, at = this.#of(moment);
    element("moment").textContent = this.worlds.length === 1
      ? `${capital(world.name)}, episode ${world.episodes[at]}, step ${world.episodeSteps[at]}`
      : `${this.worlds.length} worlds, ${this.worlds.filter((each) => each.out[Math.min(moment, each.last)]).length} out`;
  }

  #rows() {
    const [world] = this.worlds;
    return Array.from({ length: this.recording.agents }, (_, agent) => {
      const row = document.createElement("tr"), swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = this.recording.colours[world.columns[(COLOUR * world.objects + agent) * world.moments]];
      row.append(...["name", "y", "reward", "return", "held"].map(() => document.createElement("td")));
      row.firstChild.append(swatch, `agent ${agent}`);
      row.addEventListener("click", () => this.player.follow(agent));
      return row;
    });
  }

  #tellAgents(moment) {
    const [world] = this.worlds, { agents, unit } = this.recording;
    [...element("agents").rows].forEach((row, agent) => {
      const at = moment * agents + agent;
      const y = world.columns[((CENTRE + 1) * world.objects + agent) * world.moments + moment] * unit;
      const texts = [y.toFixed(1), world.rewards[at].toFixed(3), world.returns[at].toFixed(2),
        world.grabs[at] >= 0 ? "holds a cube" : ""];
      texts.forEach((text, column) => (row.cells[column + 1].textContent = text));
      row.classList.toggle("followed", agent === this.followed);
    });
  }

  #item({ moment, step, text }) {
    const item = document.createElement("li"), button = document.createElement("button"), number = document.createElement("span");
    number.textContent = `step ${step}`;
    button.append(text, number);
    button.addEventListener("click", ({ detail }) => {
      if (detail) button.blur(); // after a click, not a key: space plays again
      this.player.pause(moment);
    });
    item.append(button);
    return item;
  }

  // Events that are past are dark; the list shows the last of them.
  #tellEvents(moment) {
    const list = element("events"), past = this.events.filter((event) => event.moment <= moment).length;
    [...list.children].forEach((item, index) => item.classList.toggle("past", index < past));
    const latest = list.children[past - 1];
    list.scrollTop = latest ? latest.offsetTop + latest.offsetHeight - list.clientHeight : 0;
  }
}

// [{moment, step, text}] in their order.
function eventsOf(worlds) {
  const found = worlds.flatMap((world) => world.events.map(([moment, step, text]) => ({
    moment,
    step,
    text: worlds.length > 1 ? `${world.name}: ${text}` : text,
  })));
  return found.sort((a, b) => a.moment - b.moment || a.step - b.step);
}

const lastOf = (worlds) => Math.max(...worlds.map(({ last }) => last));
const capital = (text) => text[0].toUpperCase() + text.slice(1);
