"""Any sequence of calls against a model of a few lines: simulators; tests/pkg/test_recording.py records any history,
and tests/soak_rollouts makes any requests to engines."""

import pytest

pytest.importorskip("hypothesis")

from hypothesis import strategies as draw
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from tests.pkg.machines import LENGTHS, run_machine

import doorstep

WORLDS, LENGTH = 3, 6
SLOTS = draw.lists(draw.integers(0, WORLDS - 1), min_size=1, max_size=WORLDS, unique=True)


class Worlds(RuleBasedStateMachine):
    """A world is what has happened to it: worlds with one history are one state, and others are not.

    A history is the number of the world, how many episodes it had, the actions of the present one, its age, and whether
    its last step ended an episode: `dones` is a part of the state, and a reset does not set it.
    """

    saves = Bundle("saves")

    def __init__(self):
        super().__init__()
        self.sim = doorstep.Simulator(WORLDS, episode_length=LENGTH, num_threads=1)
        self.histories = [(world, "episode") for world in range(WORLDS)]
        self.left = [LENGTH] * WORLDS
        self.age = [0] * WORLDS
        self.done = [0] * WORLDS
        self.hashes = {}  # by histories
        self.owners = {}  # the histories that have these hashes

    @rule(action=draw.integers(0, 3), resets=draw.sets(draw.integers(0, WORLDS - 1)))
    def step(self, action, resets):
        self.sim.actions[:] = (action, action, 1 + action, action % 2)
        for world in resets:
            self.sim.resets[world] = 1
        self.sim.step()
        for world in range(WORLDS):
            self.left[world] -= 1
            self.age[world] += 1
            self.done[world] = int(self.left[world] == 0)
            if self.done[world] or world in resets:
                self._begin(world)
            else:
                self.histories[world] += (action,)

    @rule(worlds=SLOTS)
    def reset(self, worlds):
        self.sim.reset(worlds)
        for world in worlds:
            self._begin(world)
            self.done[world] = 0

    def _begin(self, world):
        """What an episode was like leaves no trace but that it was."""
        number, episodes = self.histories[world][0], self.histories[world].count("episode")
        self.histories[world] = (number, *["episode"] * (episodes + 1))
        self.left[world] = LENGTH

    @rule(target=saves, worlds=SLOTS)
    def save(self, worlds):
        lists = self.histories, self.left, self.done, self.age
        return self.sim.save(worlds), [[one[world] for one in lists] for world in worlds]

    @rule(save=saves, data=draw.data())
    def restore(self, save, data):
        saved, contents = save
        slots = data.draw(draw.permutations(range(WORLDS)))[: len(contents)]
        self.sim.restore(saved, slots)
        for slot, content in zip(slots, contents, strict=True):
            self.histories[slot], self.left[slot], self.done[slot], self.age[slot] = content

    @rule(damage=draw.integers(0, 95), save=saves)
    def restore_damaged(self, damage, save):
        data = bytearray(save[0])
        data[damage] ^= 1
        with pytest.raises(doorstep.StateError):
            self.sim.restore(data)

    @invariant()
    def tensors_tell_the_model(self):
        assert self.sim.steps_remaining[:, 0, 0].tolist() == self.left
        assert self.sim.dones[:, 0, 0].tolist() == self.done
        assert not self.sim.resets[:].any()

    @invariant()
    def histories_are_states(self):
        for *history, found in zip(self.histories, self.age, self.done, self.sim.world_hashes().tolist(), strict=True):
            assert self.hashes.setdefault(tuple(history), found) == found
            assert self.owners.setdefault(found, tuple(history)) == tuple(history)

    def teardown(self):
        self.sim.close()


@pytest.mark.parametrize("length", LENGTHS)
def test_any_sequence_of_calls_agrees_with_the_model(length):
    run_machine(Worlds, length)
