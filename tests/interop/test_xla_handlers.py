"""The custom calls of XLA, called with frames made by hand, which no compiler has checked."""

import numpy as np
import pytest
from tests.interop.places import aligned
from tests.interop.xla_frames import NO_REWARD_NO_PARTS, HandlerError, Tensor, ask_metadata, call, replaced, tensor
from tests.refuses import refuses
from tests.scenes import random_actions

import doorstep
from doorstep import levels
from doorstep._batches import LEVEL_WORDS, level_table
from doorstep._native import TENSORS, DeviceKind, batch_info

NAMES = [row.name for row in TENSORS]
TABLE = [levels.reference(), *levels.curated().values()][:4]
INVALID_ARGUMENT, FAILED_PRECONDITION, INTERNAL = 3, 9, 13
RESETS, LEVELS = 1, 2  # bits of the rule that says what a call takes


class Rooms:
    """Two worlds of two agents, with rewards and the lidar at the end of the episode as outputs."""

    def __init__(self, table=()):
        self.worlds = aligned((2, batch_info(DeviceKind.CPU, 0, 2, 2, len(table)).world_bytes // 4), "uint32")
        self.scratch = aligned((2 * 8192,), "uint8")
        self.rewards, self.final_lidar = aligned((2, 2, 1), "float32"), aligned((2, 2, 30, 2), "float32")
        self.actions, self.resets = aligned((2, 2, 4), "int32"), aligned((2, 1), "int32")
        self.drawn, self.inputs = [], LEVELS if table else 0
        if table:
            words = level_table(doorstep.SimulatorConfig(2, max_levels=len(table)), table)
            self.weights = np.ones((2, len(table)), np.float32)
            self.drawn = [tensor(self.weights), tensor(np.frombuffer(words, np.uint32).reshape(-1, LEVEL_WORDS))]

    def results(self, *outputs):
        return [tensor(array) for array in (self.worlds, self.scratch, *outputs)]

    def rules(self, inputs, *outputs):
        return [0, 2, 5, 1, 0, inputs, *NO_REWARD_NO_PARTS, *map(NAMES.index, outputs)]

    def create(self, seed, offset=0):
        words = tensor(np.array([seed, offset], np.uint32))
        call("create_cpu", [words, *self.drawn], self.results(self.rewards), self.rules(self.inputs, "rewards"))

    def step_call(self):
        worlds, actions, resets, kept = map(tensor, (self.worlds, self.actions, self.resets, self.final_lidar))
        return {
            "name": "step_cpu",
            "arguments": [worlds, actions, resets, *self.drawn, kept],
            "results": self.results(self.rewards, self.final_lidar),
            "rules": self.rules(RESETS | self.inputs, "rewards", "final_lidar"),
        }


@pytest.mark.parametrize("table", [[], TABLE], ids=["generated", "levels"])
def test_calls_step_worlds(table):
    rooms = Rooms(table)
    with doorstep.Simulator(2, seed=3, world_offset=8, episode_length=5, max_levels=len(table)) as sim:
        if table:  # from the second episode on
            rooms.weights[:] = (1, 0, 0, 0)
        rooms.create(3, 8)
        if table:
            rooms.weights[:] = 1
            sim.set_levels(table)
        for step, actions in enumerate(random_actions(1, 12, 2)):
            rooms.actions[:] = sim.actions.to_numpy()[:] = actions
            rooms.resets[:] = sim.resets.to_numpy()[:] = [[0], [step == 3]]
            sim.step()
            call(**rooms.step_call())
            assert rooms.rewards.tobytes() == sim.rewards.to_numpy().tobytes()
            assert rooms.final_lidar.tobytes() == sim.final_lidar.to_numpy().tobytes()
            assert (rooms.actions == actions).all()
            assert rooms.resets[1, 0] == (step == 3)


def test_scratch_memory_may_begin_anywhere():
    rooms, elsewhere = Rooms(), Rooms()
    elsewhere.scratch = elsewhere.scratch[64:]
    for each in (rooms, elsewhere):
        each.create(3)
        call(**each.step_call())
    assert rooms.worlds.tobytes() == elsewhere.worlds.tobytes()
    assert rooms.rewards.tobytes() == elsewhere.rewards.tobytes()


def test_outputs_without_elements_are_checked_too():
    info = batch_info(DeviceKind.CPU, 0, 1, 1)
    worlds, scratch = aligned((1, info.world_bytes // 4), "uint32"), aligned((8192,), "uint8")
    words = tensor(np.array([0, 0], np.uint32))
    rules = [0, 1, 5, 1, 0, 0, *NO_REWARD_NO_PARTS, NAMES.index("partner_observations")]
    results = [tensor(worlds), tensor(scratch), Tensor(0, (1, 1, 0, 3), "float32")]
    call("create_cpu", [words], results, rules)
    for wrong in (replaced(results[2], dtype="int32"), replaced(results[2], shape=(1, 1, 1, 3))):
        broken = [words], [*results[:2], wrong], rules
        refuses("partner_observations: wrong", call, "create_cpu", *broken, error=HandlerError)


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
    (rule(-2, 99), "rules: out of range"),
    (lambda c: c["rules"].append(4), "terminations: missing"),
    (lambda c: c["rules"].pop(), "outputs: more"),
    (lambda c: c.update(results=[]), "worlds: wrong"),
    (lambda c: c.update(arguments=[]), "worlds: missing"),
    (lambda c: c["arguments"].append(c["arguments"][1]), "arguments: more"),
    (spoilt("results", 1, shape=(64,)), "scratch: too small"),
    (spoilt("arguments", 1, shape=(1, 2, 4)), "actions: wrong"),
    (spoilt("arguments", 1, dtype="float32"), "actions: wrong"),
    (spoilt("arguments", 2, shape=(1, 1)), "resets: wrong"),
    (spoilt("arguments", 0, address=64), "worlds: must be aliased"),
    (spoilt("arguments", -1, address=64), "final_lidar: must be aliased"),
]
BROKEN_WITH_LEVELS = [
    (lambda c: c.update(arguments=c["arguments"][:4]), "levels: missing"),
    (lambda c: c.update(arguments=c["arguments"][:3]), "level_weights: missing"),
    (weights(np.ones((2, 3), np.float32)), "levels: wrong"),
    (weights(np.ones((3, 4), np.float32)), "level_weights: wrong"),
    (weights(np.ones((2, 4), np.int32)), "level_weights: wrong"),
    (weights(np.ones((2, 0), np.float32)), "level_weights: wrong"),
    (rule(-1, NAMES.index("level_weights")), "rules: out of range"),
    (rule(5, RESETS), "worlds: wrong"),
]


def test_calls_that_fit_no_batch_are_errors_and_change_nothing():
    for table, rows in ((), BROKEN), (TABLE, BROKEN + BROKEN_WITH_LEVELS):
        rooms = Rooms(table)
        with pytest.raises(HandlerError, match=r"worlds\[0\] of 2 is not a valid world") as caught:
            call(**rooms.step_call())
        assert caught.value.args[0] == FAILED_PRECONDITION
        rooms.create(0)
        before = rooms.worlds.copy()
        for spoil, message in rows:
            broken = rooms.step_call()
            spoil(broken)
            with pytest.raises(HandlerError, match=message) as caught:
                call(**broken)
            assert caught.value.args[0] == (INTERNAL if "device" in message else INVALID_ARGUMENT)
            assert (rooms.worlds == before).all()
        call(**rooms.step_call())
        assert (rooms.worlds != before).any()
