"""The forms in which environments take an agent's action: its components, or one number for all of them.

The number of an action is `numpy.ravel_multi_index(action, doorstep.ACTIONS)`: the last component changes fastest.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from doorstep._native import ACTIONS

ActionForm: TypeAlias = Literal["multi_discrete", "discrete", "tuple"]

ACTION_FORMS = ("multi_discrete", "discrete", "tuple")
NO_TUPLES = ACTION_FORMS[:2]  # of libraries that have no tuples of discrete actions
NUM_ACTIONS = math.prod(ACTIONS)  # 320
# int32 [320, 4]: the components of the action of each number
ACTION_TABLE = np.stack(np.unravel_index(np.arange(NUM_ACTIONS), ACTIONS), -1).astype(np.int32)
ACTION_TABLE.flags.writeable = False
