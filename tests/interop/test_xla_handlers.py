"""The custom calls of XLA, called with frames made by hand, which no compiler has checked."""

import numpy as np
import pytest
from tests.interop.places import aligned
from tests.interop.xla_frames import NO_REWARD_NO_PARTS, HandlerError, ask_metadata, call, replaced, tensor
from tests.refuses import refuses

import doorstep
from doorstep import levels
from doorstep._batches import LEVEL_WORDS, level_table
from doorstep._native import TENSORS, DeviceKind, batch_info

NAMES = [row.name for row in TENSORS]
INVALID_ARGUMENT, FAILED_PRECONDITION, INTERNAL = 3, 9, 13
RESETS, LEVELS = 1, 2  # bits of the rule that says what a call takes


class Rooms:
    """Two worlds of two agents in four levels, with rewards and the lidar at the end of the episode as outputs."""

    def __init__(self):
        self.worlds = aligned((2, batch_info(DeviceKind.CPU, 0, 2, 2, 4).world_bytes // 4), "uint32")
        self.scratch, self.rewards = aligned((2 * 8192,), "uint8"), aligned((2, 2, 1), "float32")
        self.final_lidar = aligned((2, 2, 30, 2), "float32")
        table = [levels.reference(), *levels.curated().values()][:4]
        words = level_table(doorstep.SimulatorConfig(2, max_levels=4), table)
        self.drawn = [np.ones((2, 4), np.float32), np.frombuffer(words, np.uint32).reshape(-1, LEVEL_WORDS)]

    def call_of(self, name, inputs, arguments, outputs):
        rules = [0, 2, 5, 1, 0, inputs, *NO_REWARD_NO_PARTS, *map(NAMES.index, outputs)]
        results = [self.worlds, self.scratch, *(getattr(self, output) for output in outputs)]
        return {
            "name": name,
            "arguments": [*map(tensor, arguments)],
            "results": [*map(tensor, results)],
            "rules": rules,
        }

    def create_call(self):
        seed_and_offset = np.array([0, 0], np.uint32)
        return self.call_of("create_cpu", LEVELS, [seed_and_offset, *self.drawn], ["rewards"])

    def step_call(self):
        given = [self.worlds, aligned((2, 2, 4), "int32"), aligned((2, 1), "int32"), *self.drawn, self.final_lidar]
        return self.call_of("step_cpu", RESETS | LEVELS, given, ["rewards", "final_lidar"])


def test_handlers_tell_their_version_and_whether_a_graph_may_hold_them():
    for name, traits in (("create_cpu", 0), ("step_cpu", 0), ("create_cuda", 1), ("step_cuda", 1)):
        metadata = ask_metadata(name)
        assert (metadata.version.major, metadata.version.minor, metadata.traits) == (0, 1, traits)
    refuses("no handler is named nothing", ask_metadata, "nothing")


def spoilt(part, place, **changes):
    """A change of one argument or result."""
    return lambda c: c[part].__setitem__(place, replaced(c[part][place], **changes))


def rule(place, value):
    return lambda c: c["rules"].__setitem__(place, value)


def weights(array):
    return lambda c: c["arguments"].__setitem__(3, tensor(array))


BROKEN = [
    (lambda c: c.update(rules=None), "rules: missing"),
    (lambda c: c.update(rules=[0, 2]), "rules: wrong"),
    (rule(0, 1), "device kind differs"),
    (rule(1, 9), "rules: out of range"),
    (rule(1, 3), "(rewards|worlds): wrong"),
    (rule(2, 0), "episode_length is 0"),
    (rule(5, RESETS), "worlds: wrong"),
    (rule(-1, NAMES.index("level_weights")), "rules: out of range"),
    (rule(-2, 99), "rules: out of range"),
    (lambda c: c["rules"].append(4), "terminations: missing"),
    (lambda c: c["rules"].pop(), "outputs: more"),
    (lambda c: c.update(arguments=[]), "worlds: missing"),
    (lambda c: c.update(arguments=c["arguments"][:3]), "level_weights: missing"),
    (lambda c: c["arguments"].append(c["arguments"][1]), "arguments: more"),
    (spoilt("results", 1, shape=(64,)), "scratch: too small"),
    (spoilt("arguments", 0, address=64), "worlds: must be aliased"),
    (spoilt("arguments", 1, shape=(1, 2, 4)), "actions: wrong"),
    (spoilt("arguments", 1, dtype="float32"), "actions: wrong"),
    (spoilt("arguments", 2, shape=(1, 1)), "resets: wrong"),
    (spoilt("arguments", -1, address=64), "final_lidar: must be aliased"),
    (weights(np.ones((2, 3), np.float32)), "levels: wrong"),
    (weights(np.ones((3, 4), np.float32)), "level_weights: wrong"),
    (weights(np.ones((2, 0), np.float32)), "level_weights: wrong"),
]


def test_calls_that_fit_no_batch_are_errors_and_change_nothing():
    rooms = Rooms()
    with pytest.raises(HandlerError, match=r"worlds\[0\] of 2 is not a valid world") as caught:
        call(**rooms.step_call())
    assert caught.value.args[0] == FAILED_PRECONDITION
    call(**rooms.create_call())
    before = rooms.worlds.copy()
    for spoil, message in BROKEN:
        broken = rooms.step_call()
        spoil(broken)
        with pytest.raises(HandlerError, match=message) as caught:
            call(**broken)
        assert caught.value.args[0] == (INTERNAL if "device" in message else INVALID_ARGUMENT)
        assert (rooms.worlds == before).all()
    call(**rooms.step_call())
    assert (rooms.worlds != before).any()
