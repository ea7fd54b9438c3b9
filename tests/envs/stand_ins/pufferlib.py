"""What PufferLib 3 asks of an environment, written from its contract; PufferLib itself can hardly be installed.

Its source distribution builds only with PyTorch there and fetches libraries meanwhile. The class checks what the
contract says an environment sets before and after, makes the buffers, and drives the environment as PufferLib's own
vectors do.
"""

import numpy as np
from gymnasium import spaces

BUFFERS = ("observations", "rewards", "terminals", "truncations", "masks", "actions")


def joined(space, rows):
    """The space of that many rows."""
    if isinstance(space, spaces.MultiDiscrete):
        low, high, dtype = np.zeros_like(space.nvec), space.nvec - 1, space.dtype
    else:
        low, high, dtype = space.low, space.high, space.dtype
    return spaces.Box(np.tile(low, (rows, 1)), np.tile(high, (rows, 1)), dtype=dtype.type)


class PufferEnv:
    num_agents: int
    single_observation_space: spaces.Box
    single_action_space: spaces.MultiDiscrete

    def __init__(self, buf=None):
        assert self.num_agents >= 1
        assert isinstance(self.single_observation_space, spaces.Box)
        assert isinstance(self.single_action_space, (spaces.Discrete, spaces.MultiDiscrete, spaces.Box))
        assert not hasattr(self, "observation_space"), "spaces of all rows are PufferLib's to make"
        assert not hasattr(self, "action_space"), "spaces of all rows are PufferLib's to make"
        for name, buffer in (buf or own_buffers(self)).items():
            setattr(self, name, buffer)
        self.observation_space = joined(self.single_observation_space, self.num_agents)
        self.action_space = joined(self.single_action_space, self.num_agents)
        self.agent_ids = np.arange(self.num_agents)

    emulated = False
    done = False

    @property
    def driver_env(self):
        return self

    def async_reset(self, seed=None):
        _, self.infos = self.reset(seed)
        assert isinstance(self.infos, list)

    def send(self, actions):
        *_, self.infos = self.step(actions)
        assert isinstance(self.infos, list)

    def recv(self):
        first = tuple(getattr(self, name) for name in BUFFERS[:4])
        return (*first, self.infos, self.agent_ids, self.masks)


def own_buffers(env):
    rows = env.num_agents
    return {
        "observations": np.zeros((rows, *env.single_observation_space.shape), env.single_observation_space.dtype),
        "rewards": np.zeros(rows, np.float32),
        "terminals": np.zeros(rows, bool),
        "truncations": np.zeros(rows, bool),
        "masks": np.ones(rows, bool),
        "actions": np.zeros((rows, *env.single_action_space.shape), np.int32),
    }
