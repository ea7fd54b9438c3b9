"""Recordings for tests: their bytes as docs/reference/recording_format.md describes them, and runs of any history."""

import json
import struct
import tracemalloc
import zlib
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

import numpy as np
import pytest

import doorstep
from doorstep.levels import Cube, GeneratedLevel, Level, Physics, Rewards, Room, Spawn, reference
from doorstep.recording import Recording, RecordingWriter, Replay

HEAD_BYTES, HEADER_BYTES = 16, 28
WORLDS = 5


class Chunk(NamedTuple):
    kind: str
    position: int
    payload: bytes


def parse(data):
    """The chunks of a file; every checksum is verified."""
    magic, version, checksum = struct.unpack_from("<8sII", data)
    assert (magic, version) == (bytes.fromhex("894453524543 0d0a"), 1)
    assert checksum == zlib.crc32(data[:12])
    chunks, at = [], HEAD_BYTES
    while at < len(data):
        kind, payload_checksum, length, position, header_checksum = struct.unpack_from("<4sIQQI", data, at)
        assert header_checksum == zlib.crc32(data[at : at + 24])
        at += HEADER_BYTES
        payload = data[at : at + length]
        assert len(payload) == length
        assert payload_checksum == zlib.crc32(payload)
        chunks.append(Chunk(kind.decode(), position, payload))
        at += length
    return chunks


def ends(data):
    """How many steps are complete, by the size of a file that ends after a chunk."""
    found, size = {}, HEAD_BYTES
    for chunk in parse(data):
        size += HEADER_BYTES + len(chunk.payload)
        found[size] = chunk.position
    return found


def build(chunks, version=1):
    """A file with these chunks and right checksums."""
    head = struct.pack("<8sI", b"\x89DSREC\r\n", version)
    data = head + struct.pack("<I", zlib.crc32(head))
    for kind, position, payload in chunks:
        header = struct.pack("<4sIQQ", kind.encode(), zlib.crc32(payload), len(payload), position)
        data += header + struct.pack("<I", zlib.crc32(header)) + payload
    return data


def with_changed(data, kind, number, change):
    """The file with another chunk in place of the `number`th of its kind."""
    chunks = parse(data)
    at = [index for index, chunk in enumerate(chunks) if chunk.kind == kind][number]
    chunks[at] = change(chunks[at])
    return build(chunks)


def put(path, kind, number, payload):
    """Replaces the payload of the `number`th chunk of a kind in a file."""
    path.write_bytes(with_changed(path.read_bytes(), kind, number, lambda chunk: chunk._replace(payload=payload)))


def kinds(path):
    """Of the chunks of a file."""
    return [chunk.kind for chunk in parse(path.read_bytes())]


def config_of(data):
    return json.loads(parse(data)[0].payload)


def put_config(path, version=doorstep.__version__, **rules):
    """Changes the version or rules that a file names."""
    content = config_of(path.read_bytes())
    content = {**content, "doorstep": version, "config": {**content["config"], **rules}}
    put(path, "CONF", 0, json.dumps(content).encode())


def unpack_steps(payload, num_worlds, num_agents):
    """Actions [S, N, A, 4] and resets [S, N], or None, of a chunk STEP."""
    packing, with_resets, zero, num_steps = struct.unpack_from("<BBHI", payload)
    assert zero == 0
    raw, rows = zlib.decompress(payload[8:]), num_worlds * num_agents
    if packing == 0:
        size = 2 * rows * num_steps
        moves, others = np.frombuffer(raw[:size], np.uint8).reshape(2, rows, num_steps).astype(int)
        planes = np.stack([moves % 4, moves // 4, others % 8, others // 8])
    else:
        assert packing == 1
        size = 16 * rows * num_steps
        planes = np.frombuffer(raw[:size], "<i4").reshape(4, rows, num_steps)
    actions = planes.transpose(2, 1, 0).reshape(num_steps, num_worlds, num_agents, 4)
    assert len(raw) == size + with_resets * num_worlds * num_steps
    return actions, (np.frombuffer(raw[size:], np.uint8).reshape(num_worlds, num_steps).T if with_resets else None)


def pack_steps(actions, resets=None):
    """A chunk STEP of actions [S, N, A, 4] as plain integers, and of resets [S, N]."""
    num_steps = len(actions)
    raw = np.ascontiguousarray(actions.reshape(num_steps, -1, 4).transpose(2, 1, 0), "<i4").tobytes()
    raw += b"" if resets is None else np.ascontiguousarray(resets.T, np.uint8).tobytes()
    return struct.pack("<BBHI", 1, resets is not None, 0, num_steps) + zlib.compress(raw)


def as_another_writer(data, chance):
    """The same recording with every step in a chunk of its own, as plain integers, and fewer hashes."""
    rules, chunks = config_of(data)["config"], []
    for chunk in parse(data)[:-1]:
        if chunk.kind == "STEP":
            actions, resets = unpack_steps(chunk.payload, rules["num_worlds"], rules["num_agents"])
            for at in range(len(actions)):
                payload = pack_steps(actions[at : at + 1], None if resets is None else resets[at : at + 1])
                chunks.append(Chunk("STEP", chunk.position - len(actions) + 1 + at, payload))
        elif chunk.kind != "HASH" or chance.random() < 0.5:
            chunks.append(chunk)
    return build([*chunks, Chunk("END ", chunks[-1].position, struct.pack("<Q", len(chunks)))])


# ---- Recordings of doorstep


def random_actions(steps, worlds=WORLDS, agents=2):
    return np.random.default_rng(1).integers(doorstep.ACTIONS, size=(steps, worlds, agents, 4), dtype=np.int32)


def record(path, actions, hash_interval=64, **rules):
    """Records a new simulator; returns the hashes of its worlds at the end."""
    _, worlds, agents, _ = actions.shape
    with doorstep.Simulator(worlds, num_agents=agents, **rules) as sim:
        with RecordingWriter(path, sim, hash_interval=hash_interval) as writer:
            play(writer, sim, actions)
        return sim.world_hashes()


def play(writer, sim, actions):
    for step in actions:
        sim.actions = step
        writer.append()
        sim.step()


def replayed(path, **options):
    """Replays a file, whose hashes must be met."""
    with Recording(path) as recording:
        recording.replay(**options)


def difference(path):
    """The error of a replay that differs."""
    with pytest.raises(doorstep.ReplayError) as caught:
        replayed(path)
    return caught.value


@contextmanager
def little_memory(megabytes):
    """What runs within may not take more of Python's memory at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes << 20
    finally:
        tracemalloc.stop()


# ---- Any history


def hall(number, **changes):
    """Three agents and a cube on an endless floor; the number tells halls apart."""
    parts = {
        "spawns": (Spawn((-5, -3), 0.1), Spawn(4, (0, 2), 1 / 3), Spawn(-9, -9)),
        "cubes": (Cube(0, 5 + number, 0.1),),
        "rooms": (Room(0, 40),),
        "physics": Physics(cube_mass=(5, 20)),
    }
    return Level(**parts | changes, name=f"Saal {number}, größer")


LEVELS = (hall(1, episode_length=(2, 5)), GeneratedLevel(room_types=("any", "single_button", "any")), hall(2))
REWARD = Rewards(progress=0.3, idle=-0.1, cube_approach=0.5, exit=2.0)


class Moment(NamedTuple):
    saved: bytes
    tensors: dict[str, bytes]


def moment(sim):
    tensors = {name: tensor.copy_to_host().tobytes() for name, tensor in sim.tensors.items() if name != "actions"}
    return Moment(sim.save(), tensors)


class Run:
    """A recorded run with drawn rules and a drawn history, and what it was like before every step and at its end."""

    def __init__(self, path, number):
        self.path, self.chance = path, Random(number)
        choice, between = self.chance.choice, self.chance.randint
        self.reward = choice((None, REWARD))
        self.rules = {
            "num_worlds": between(1, 9), "seed": between(0, 99), "num_agents": between(1, 3),
            "episode_length": between(2, 9), "world_offset": choice((0, 7)), "auto_reset": choice((True, True, False)),
            "action_check": choice(("clamp", "raise", "off")), "max_levels": choice((0, 1, 3)),
        }  # fmt: skip
        self.interval, self.steps, self.moments = between(1, 7), [], []
        with doorstep.Simulator(**self.rules, reward=self.reward, num_threads=1) as sim:
            self.sim, self.writer, self.is_new = sim, None, choice((True, True, False))
            for _ in range(0 if self.is_new else between(1, 2)):
                sim.step()
                self.intervene("seed", "reset", "edit", "levels")
            self.config = sim.config.replace(num_threads=None)  # its seed may be another by now
            with RecordingWriter(path, sim, hash_interval=self.interval) as self.writer:
                for _ in range(between(0, 25)):
                    if choice((True, False, False)):
                        self.intervene("seed", "reset", "edit", "restore", "levels", "weights")
                    self.step()
                self.intervene("reset", "edit", "restore")
                self.moments.append(moment(sim))
        del self.sim, self.writer

    def some_worlds(self):
        return self.chance.sample(range(self.rules["num_worlds"]), self.chance.randint(0, self.rules["num_worlds"]))

    def step(self):
        found = moment(self.sim)
        generator = np.random.default_rng(self.chance.randrange(2**32))
        low, high = -(generator.random(4) < 0.05).astype(int), doorstep.ACTIONS + (generator.random(4) < 0.1)
        actions = generator.integers(low, high, self.sim.actions.shape)  # some are out of range, and few by far
        if self.chance.random() < 0.1:
            actions[-1, -1, self.chance.randrange(4)] = self.chance.choice((-(2**31), 2**31 - 1))
        resets = np.zeros(self.rules["num_worlds"], bool)
        resets[self.some_worlds() if self.chance.random() < 0.2 else []] = True
        before = self.sim.actions.copy_to_host()
        self.sim.actions, self.sim.resets = actions, resets.astype(np.int32)
        if self.rules["action_check"] == "raise" and ((actions < 0) | (actions >= doorstep.ACTIONS)).any():
            with pytest.raises(doorstep.ArgumentError, match="action"):
                self.writer.step()
            self.sim.actions, self.sim.resets = before, np.zeros_like(resets, np.int32)  # saves have them
            return
        if self.chance.random() < 0.5:
            self.writer.step()
        else:
            self.writer.append()
            self.sim.step()
        self.moments.append(found)
        self.steps.append((actions, resets))

    def intervene(self, *kinds):
        kind, sim, writer = self.chance.choice(kinds), self.sim, self.writer
        if kind == "reset":
            (writer or sim).reset(self.chance.choice((None, self.some_worlds())))
            return
        if kind == "levels" and sim.config.max_levels:
            sim.set_levels(self.chance.sample(LEVELS, self.chance.randint(1, sim.config.max_levels)))
        if kind == "weights" and sim.config.max_levels:
            sim.level_weights[:] = self.chance.choice((0.0, 0.5, 2.0, -1.0, float("nan")))
            sim.level_weights[0, -1] = self.chance.random()
        if kind == "seed":
            sim.reset(seed=self.chance.randrange(9))
        if kind == "edit":
            sim.state.body_positions[self.some_worlds(), self.chance.randint(0, 2), :2] += self.chance.random()
        if kind == "restore" and self.moments:
            sim.restore(self.chance.choice(self.moments).saved)
        if kind in ("seed", "edit", "restore") and writer:
            writer.checkpoint()

    def assert_read(self, path):
        """The recording tells the rules, the actions and the resets."""
        with Recording(path) as recording:
            assert recording.config == self.config
            assert (recording.reward, recording.num_steps, recording.complete) == (self.reward, len(self.steps), True)
            for step in self.chance.sample(range(len(self.steps)), len(self.steps)):
                actions, resets = recording.actions(step), recording.resets(step)
                assert (actions.dtype, resets.dtype) == (np.int32, np.bool_)
                assert (actions == self.steps[step][0]).all()
                assert (resets == self.steps[step][1]).all()

    def assert_replays(self, path, *, incomplete=False):
        """Every moment comes again, to the last bit, also in any order. Returns the number of steps."""
        with (
            Recording(path, incomplete=incomplete) as recording,
            doorstep.Simulator.from_config(recording.config.replace(num_threads=2), reward=recording.reward) as sim,
        ):
            num_steps, max_levels = recording.num_steps, recording.config.max_levels
            if max_levels:
                sim.set_levels([hall(7)] * max_levels)  # what it had before does not matter
            play = Replay(recording, sim)
            for position in range(num_steps + 1):
                if position < num_steps or not incomplete:  # what followed the last step may be missing
                    self.assert_is(sim, position, finals=not recording.same_version_only)
                if position < num_steps:
                    play.step()
            for _ in range(min(4, num_steps)):
                position = self.chance.randrange(num_steps)
                sim.restore(self.moments[position].saved)
                play.position = position
                self.assert_is(sim, position, finals=False)
                for later in range(position + 1, min(position + 4, num_steps)):
                    play.step()
                    self.assert_is(sim, later, finals=False)
        return num_steps

    def assert_is(self, sim, position, finals):
        found, expected = moment(sim), self.moments[position]
        assert found.saved == expected.saved
        for name, values in expected.tensors.items():
            assert found.tensors[name] == values or (name.startswith("final_") and not finals), (name, position)


REFERENCE = reference().to_dict()
