"""Every method of a simulator on the GPU does what it does on the CPU, in any order."""

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in, refused
from tests.cuda.twins import Twins, some_levels
from tests.cuda.users_memory import UsersArray
from tests.pkg.machines import LENGTHS, run_machine

pytest.importorskip("hypothesis")

from hypothesis import strategies as draw
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

import doorstep
from doorstep import cuda
from doorstep._native import STATE_FIELDS

WORLDS = 6
SLOTS = draw.lists(draw.integers(0, WORLDS - 1), max_size=WORLDS, unique=True)
SEEDS, FLAG, CHECKS = draw.integers(0, 9), draw.booleans(), draw.sampled_from(["clamp", "off"])
EDITED = [row.name for row in STATE_FIELDS if row.writable]


class BothDevices(RuleBasedStateMachine):
    """Whatever is called, worlds, tensors, health and saves are the CPU's, to the bit."""

    saves = Bundle("saves")

    @initialize(num_agents=draw.sampled_from([1, 2, 3]), has_levels=FLAG, auto_reset=FLAG, action_check=CHECKS)
    def begin(self, num_agents, has_levels, **options):
        self.table = some_levels(num_agents) if has_levels else []
        options |= {"num_agents": num_agents, "max_levels": len(self.table), "episode_length": 6}
        self.twins = Twins(WORLDS, world_offset=2, **options)
        if has_levels:
            self.set_levels(slice(None), 0)

    def each(self, action):
        return [action(sim) for sim in self.twins]

    @rule(seed=SEEDS, most=draw.sampled_from([None, 9]), resets=SLOTS)
    def step(self, seed, most, resets):
        chosen = np.isin(np.arange(WORLDS), resets).astype(np.int32)[:, None] * (1 + seed)
        self.each(lambda sim: sim.resets.copy_from_host(chosen))
        shape = self.twins.cpu.actions.shape
        if most:  # also numbers out of range
            self.twins.step(np.random.default_rng(seed).integers(-most, most, shape, dtype=np.int32))
        else:
            self.twins.step_randomly(1 + seed % 3, seed=seed)

    @rule()
    def step_and_wait(self):
        event = self.twins.gpu.step_async()
        assert not event.done
        self.twins.cpu.step()
        assert (event.wait(), event.done) == (True, True)

    @rule(worlds=draw.none() | SLOTS, as_mask=draw.booleans())
    def reset(self, worlds, as_mask):
        chosen = np.isin(np.arange(WORLDS), worlds) if as_mask and worlds is not None else worlds
        self.each(lambda sim: sim.reset(chosen))

    @rule(seed=SEEDS)
    def begin_anew(self, seed):
        before = self.twins.gpu.lidar.__cuda_array_interface__["data"]
        self.each(lambda sim: sim.reset(seed=seed))
        assert self.twins.gpu.lidar.__cuda_array_interface__["data"] == before

    @precondition(lambda self: self.table)
    @rule(chosen=draw.sampled_from([slice(None), slice(0, 2), slice(1, None, 2)]), seed=SEEDS)
    def set_levels(self, chosen, seed):
        self.each(lambda sim: sim.set_levels(self.table[chosen]))
        weights = np.zeros((WORLDS, len(self.table)), np.float32)
        weights[:, : len(self.table[chosen])] = np.random.default_rng(seed).random((WORLDS, len(self.table[chosen])))
        self.each(lambda sim: sim.level_weights.copy_from_host(weights))

    @rule(field=draw.sampled_from(EDITED), seed=SEEDS, then_refresh=draw.booleans())
    def edit(self, field, seed, then_refresh):
        """Other worlds' values, and for floats a little more; indices become impossible now and then."""
        values = getattr(self.twins.cpu.state, field).copy_to_host()
        edited = values[np.random.default_rng(seed).permutation(WORLDS)].copy()
        if field in ("body_positions", "agent_max_y"):
            edited *= np.float32(0.5 + seed / 8)
        if field == "agent_grabs" and seed % 2:
            edited[seed % WORLDS] = 99
        self.each(lambda sim: getattr(sim.state, field).copy_from_host(edited))
        if then_refresh:
            self.each(lambda sim: sim.refresh())

    @rule(target=saves, worlds=draw.none() | SLOTS.filter(len))
    def save(self, worlds):
        here, there = self.each(lambda sim: sim.save(worlds))
        assert here == there
        return here, WORLDS if worlds is None else len(worlds)

    @rule(save=saves, data=draw.data())
    def restore(self, save, data):
        slots = data.draw(draw.permutations(range(WORLDS)))[: save[1]]
        self.each(lambda sim: sim.restore(save[0], slots))

    @rule(worlds=SLOTS)
    def hash(self, worlds):
        hashes = self.twins.gpu.world_hashes()
        assert self.twins.gpu.hash(worlds) == sum(int(hashes[world]) for world in worlds) % 2**64

    @invariant()
    def all_is_the_same(self):
        self.twins.assert_same()
        here, there = self.each(lambda sim: (sim.step_count, sim.seed, sim.levels))
        assert here == there
        for row in STATE_FIELDS:
            here, there = self.each(lambda sim: getattr(sim.state, row.name).copy_to_host().tobytes())  # noqa: B023
            assert here == there, row.name

    def teardown(self):
        self.each(lambda sim: sim.close())


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_any_sequence_of_calls_does_the_same_on_both_devices(number):
    settings = LENGTHS[number].values[0]
    run_machine(BothDevices, type(settings)(settings, max_examples=min(settings.max_examples, 60)))


@on_stand_in(devices=2)
def test_device_and_repr_name_the_gpu():
    with doorstep.Simulator(2, device="auto") as first, doorstep.Simulator(2, device="cuda:1") as second:
        first.step()
        assert (first.device, second.device) == ("cuda:0", "cuda:1")
        assert repr(second) == "Simulator(2 worlds, 2 agents, seed 0, cuda:1)"
        assert repr(second.rewards) == "Tensor(rewards, float32 [2, 2, 1], cuda:1, read-only)"
        assert second.rewards.device == "cuda:1"
        with pytest.raises(doorstep.DeviceError, match="CPU"):
            first.start_profile()


def test_allocated_bytes_are_what_the_device_gave():
    before = cuda.Device().free_bytes
    with doorstep.Simulator(3000, device="cuda") as sim:
        assert 0 < before - cuda.Device().free_bytes <= sim.allocated_bytes <= 3000 * 3072 + 64 * 2**20


def test_checked_actions_out_of_range_are_refused_and_nothing_is_stepped():
    options = {"device": "cuda", "action_check": "raise", "strict": True}
    with driver.users_stream() as stream, doorstep.Simulator(40, stream=stream, **options) as sim:
        for place in (None, UsersArray(sim.actions.shape, np.int32, stream)):
            sim.bind(actions=place)
            sim.step()
            before, count = sim.hash(), sim.step_count
            actions = sim.actions.copy_to_host()
            actions[37, 1, 2] = 5
            sim.actions.copy_from_host(actions)
            with refused("actions", r"actions\[37, 1, 2\] is 5"):
                sim.step()
            assert (sim.hash(), sim.step_count, sim.health.clamped_actions) == (before, count, 0)
            actions[37, 1, 2] = 4
            sim.actions.copy_from_host(actions)
            sim.step()
            assert sim.hash() != before


def test_strict_simulators_tell_each_trouble_once_until_the_world_is_reset():
    told = [], []
    for lines, sim in zip(told, Twins(40, strict=True), strict=True):
        sim.step()
        positions = sim.state.body_positions.copy_to_host()
        positions[33, 0, 0] = np.nan
        sim.state.body_positions.copy_from_host(positions)
        for number in range(9):
            try:
                sim.step()
                sim.wait()
                lines.append("well")
            except doorstep.SimulationError as error:
                lines.append(str(error))
            if number == 5:
                sim.reset([33])
        lines.append(sim.health)
    assert told[0] == told[1]
    assert [text == "well" for text in told[1][:9]] == [True, False] * 3 + [True] * 3
    assert "world 33, body 0, step 1 of" in told[1][1]
