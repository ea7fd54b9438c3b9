"""Keywords that no environment has are TypeErrors, as of every Python function; gymnasium and TorchRL rely on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.envs.every import ENVIRONMENTS, make

import doorstep.envs

gymnasium: Any = pytest.importorskip("gymnasium")

WRONG = {
    "num_worlds": "pass num_envs",
    "n_envs": "pass num_envs",
    "auto_reset": "pass autoreset_mode",
    "episode_lenght": "did you mean 'episode_length'",
    "frameskip": "it takes action_check, ",
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_unknown_keywords_are_type_errors(name: str, wrong: str) -> None:
    if (name, wrong) == ("EscapeRoomTorchRLEnv", "auto_reset"):
        return  # TorchRL's own keyword of every environment
    with pytest.raises(TypeError, match=rf"__init__\(\) got an unexpected keyword argument '{wrong}'") as caught:
        make(name, **{wrong: 1})
    assert WRONG[wrong] in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "hint"), [("num_worlds", "jax.vmap"), ("seed", "key of reset"), ("num_agent", "'num_agents'")]
)
def test_unknown_keywords_of_the_jax_environment_are_type_errors(wrong: str, hint: str) -> None:
    pytest.importorskip("jax")
    arguments: dict[str, Any] = {wrong: 1}
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{wrong}'") as caught:
        doorstep.envs.EscapeRoomJaxEnv(**arguments)
    assert hint in str(caught.value)


def test_gymnasium_tells_which_keyword_is_unknown() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'"):
        gymnasium.make("doorstep/EscapeRoom-v0", frameskip=4)


@pytest.mark.parametrize(
    "options", [{"width": 0}, {"widht": 64}, {"samples": 9}, {"camera": "side"}, {"agent": 2}, ["width"]]
)
def test_wrong_options_of_pictures_are_refused_when_the_environment_is_made(options: Any) -> None:
    with pytest.raises(doorstep.ArgumentError):
        make("EscapeRoomVectorEnv", render_options=options)


def test_pictures_have_the_options_of_the_environment() -> None:
    options = {"width": 64, "height": 48, "samples": 2, "camera": "top"}
    env = make("EscapeRoomEnv", render_mode="rgb_array", render_options=options)
    env.reset()
    np.testing.assert_array_equal(env.render(), env.simulator.render(0, **options))
    env.close()


def test_pictures_have_a_ray_for_each_pixel_by_default() -> None:
    env = make("EscapeRoomEnv", render_mode="rgb_array")
    env.reset()
    np.testing.assert_array_equal(env.render(), env.simulator.render(0, "overview", samples=1))
    env.close()
