"""Environments on a real GPU return what they return on the CPU."""

from typing import Any

import numpy as np
import pytest
from tests.gpu.frameworks import cuda_torch
from tests.scenes import random_actions

import doorstep

torch = cuda_torch()
pytest.importorskip("gymnasium")

import doorstep.envs  # noqa: E402
from doorstep import levels  # noqa: E402

WORLDS, STEPS = 64, 40
RULES: dict[str, Any] = {"episode_length": 9, "agents": "rows", "seed": 3}


def play(device: str, **rules: Any) -> list[Any]:
    """All that the steps of an environment return, on the host."""
    env = doorstep.envs.TorchEscapeRoomVectorEnv(2 * WORLDS, device=device, **RULES, **rules)
    returned: list[Any] = [env.reset()[0].cpu().numpy()]
    for actions in random_actions(1, STEPS, WORLDS):
        chosen = torch.from_numpy(np.ascontiguousarray(actions.reshape(2 * WORLDS, -1))).to(env._rooms.device)
        *step, _ = env.step(chosen)
        assert all(tensor.device.type == device for tensor in step)
        returned += [tensor.cpu().numpy().copy() for tensor in step]
    env.close()
    return returned


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize("played", ["reference", "curated"])
def test_steps_return_what_they_return_on_the_cpu(played: str, autoreset: str) -> None:
    rules: dict[str, Any] = {"autoreset_mode": autoreset}
    if played == "curated":
        rules["levels"] = list(levels.curated().values())
    play("cuda", **rules)  # loads what stays loaded
    found, expected = (play(device, **rules) for device in ("cuda", "cpu"))
    assert all(one.tobytes() == other.tobytes() for one, other in zip(found, expected, strict=True))
