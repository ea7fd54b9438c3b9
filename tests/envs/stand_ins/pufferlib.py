"""What PufferLib 3 asks of an environment, written from its contract; PufferLib itself can hardly be installed.

Its source distribution builds only with PyTorch there and fetches libraries meanwhile. The class checks what the
contract says an environment sets before, and makes the buffers.
"""

import numpy as np
from gymnasium import spaces


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
        rows, observed = self.num_agents, self.single_observation_space
        own = {
            "observations": np.zeros((rows, *observed.shape), observed.dtype),
            "rewards": np.zeros(rows, np.float32),
            "terminals": np.zeros(rows, bool),
            "truncations": np.zeros(rows, bool),
            "masks": np.ones(rows, bool),
            "actions": np.zeros((rows, *self.single_action_space.shape), np.int32),
        }
        for name, buffer in (buf or own).items():
            setattr(self, name, buffer)
