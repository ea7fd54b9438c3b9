// The recorded moments of some worlds. replay_page.py writes them and documents the layout.

async function readRecording(text) {
  const { data, ...recording } = JSON.parse(text);
  const buffer = await inflate(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)));
  let offset = 0;
  const take = (Type, count) => {
    const array = new Type(buffer, offset, count);
    offset += array.byteLength;
    return array;
  };
  for (const world of recording.worlds) {
    const { moments, objects } = world, agents = recording.agents;
    world.rewards = take(Float32Array, moments * agents);
    world.finalRewards = take(Float32Array, moments * agents);
    world.episodes = take(Int32Array, moments);
    world.episodeSteps = take(Int32Array, moments);
    world.grabs = take(Int32Array, moments * agents);
    world.furthest = take(Int32Array, moments);
    world.out = take(Int32Array, moments);
    world.goals = take(Float32Array, 4 * moments);
    world.columns = undoDifferences(take(Int16Array, COLUMNS * objects * moments), moments);
    offset = Math.ceil(offset / 4) * 4;
    world.last = moments - 1;
    world.returns = returnsOf(world, agents);
    world.name = isOnly(world.level, recording.worlds) ? world.level : `world ${world.world}`;
  }
  return recording;
}

// Of each agent in its episode so far.
function returnsOf({ moments, episodes, rewards }, agents) {
  const returns = new Float32Array(rewards.length);
  for (let at = agents; at < moments * agents; ++at) {
    const moment = Math.floor(at / agents);
    if (episodes[moment] === episodes[moment - 1]) returns[at] = returns[at - agents] + rewards[at];
  }
  return returns;
}

// Whether a world can be called by its level.
const isOnly = (name, worlds) => name !== "" && worlds.filter(({ level }) => level === name).length === 1;

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// Each column of each object is one run of differences from moment to moment.
function undoDifferences(values, moments) {
  for (let i = 0; i < values.length; ++i) if (i % moments) values[i] += values[i - 1];
  return values;
}

// Columns of an object: kind, colour, centre, rotation, size.
const COLUMNS = 12, COLOUR = 1, CENTRE = 2, ROTATION = 5, SIZE = 9;
const KINDS = { BUTTON: 1, CUBE: 2, WALL: 3, AGENT: 4, DOOR: 5 };

// The objects at a time in moments; between two moments of an episode they move evenly.
function objectsAt(recording, world, time) {
  const before = Math.floor(time), share = time - before;
  const after = share && world.episodes[before + 1] === world.episodes[before] ? before + 1 : before;
  const objects = [];
  for (let index = 0; index < world.objects; ++index) {
    const read = (column, moment) => world.columns[(column * world.objects + index) * world.moments + moment];
    const between = (column) => {
      const value = read(column, before);
      return value + share * (read(column, after) - value);
    };
    const vector = (column) => [between(column), between(column + 1), between(column + 2)];
    const kind = read(0, before);
    if (kind === 0) continue;
    const half = scale(vector(SIZE), recording.unit / 2);
    objects.push({
      kind,
      index,
      colour: recording.colours[read(COLOUR, before)],
      pressed: kind === KINDS.BUTTON && 2 * half[2] < recording.look.button_height / 2,
      centre: scale(vector(CENTRE), recording.unit),
      rotation: rotationBetween(read, before, after, share),
      half,
    });
  }
  return objects;
}

function rotationBetween(read, before, after, share) {
  const first = [0, 1, 2, 3].map((i) => read(ROTATION + i, before));
  const second = [0, 1, 2, 3].map((i) => read(ROTATION + i, after));
  const sign = first.reduce((sum, value, i) => sum + value * second[i], 0) < 0 ? -1 : 1;
  const mixed = first.map((value, i) => value + share * (sign * second[i] - value));
  const length = Math.hypot(...mixed) || 1;
  return mixed.map((value) => value / length);
}
