"""A bad argument raises ArgumentError, which names it, its value and the range; nothing has changed or leaked."""

from typing import Any

import numpy as np
import pytest

import doorstep

NOT_INTEGERS: list[Any] = [1.5, 2.0, np.float32(3), "8", b"8", None, [1], True, np.True_, np.arange(2)]

CONSTRUCTOR: list[tuple[str, list[Any], str]] = [
    ("num_worlds", [0, -1, 2**30 + 1, 2**40, 2**70, np.int64(0), *NOT_INTEGERS], "1 to 1073741824"),
    ("seed", [-1, 2**32, 2**64, 2**70, *NOT_INTEGERS], "0 to 4294967295"),
    ("world_offset", [-1, 2**32 - 1, 2**63, *NOT_INTEGERS], "0 to 4294967294"),
    ("num_agents", [0, 9, -(2**70), *NOT_INTEGERS], "1 to 8"),
    ("episode_length", [0, 1_000_001, 2**32 + 200, *NOT_INTEGERS], "1 to 1000000"),
    ("num_threads", [0, -1, 1025, *[value for value in NOT_INTEGERS if value is not None]], "1 to 1024"),
    ("stream", [-1, 2**64, *[value for value in NOT_INTEGERS if value is not None]], "0 to 18446744073709551615"),
    ("auto_reset", [1, 0, "yes", None], "True or False"),
    ("strict", [1, None], "True or False"),
    ("flat_observations", [0, "False"], "True or False"),
    ("action_check", ["CLAMP", "", 0, None, ["off"]], "'clamp', 'raise', 'off'"),
    (
        "device",
        ["gpu", "CPU", "cpu:0", "auto:1", "cuda:", "cuda:-1", "cuda:x", "cuda:\u0663", "cuda:" + "9" * 30, "", 0, None],
        "'cpu', 'cuda', 'cuda:K' (K = 0, 1, ...) or 'auto'",
    ),
]
CONSTRUCTOR_CASES = [
    pytest.param(name, value, allowed, id=f"{name}={value!r}")
    for name, values, allowed in CONSTRUCTOR
    for value in values
]


@pytest.mark.parametrize(("name", "value", "allowed"), CONSTRUCTOR_CASES)
def test_constructor_names_argument_value_and_range(name: str, value: Any, allowed: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        doorstep.Simulator(**{"num_worlds": 2, name: value})
    message = str(caught.value)
    assert caught.value.argument == name
    assert message.startswith(f"{name} is {value!r}"[:50])
    assert allowed in message


def test_long_values_are_shortened_in_messages() -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        doorstep.Simulator("x" * 10_000)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200


def test_num_worlds_is_required_and_the_rest_is_by_keyword() -> None:
    with pytest.raises(TypeError):
        doorstep.Simulator()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        doorstep.Simulator(2, 0)  # type: ignore[call-arg]


def test_a_stream_on_the_cpu_is_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="stream"):
        doorstep.Simulator(2, stream=1)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7"])
def test_a_gpu_that_cannot_be_used_is_a_device_error_that_says_what_to_do(device: str) -> None:
    with pytest.raises(doorstep.DeviceError) as caught:
        doorstep.Simulator(2, device=device)
    assert caught.value.hint


WORLDS: list[tuple[Any, str]] = [
    ([4], "0 to 3"),
    ([-1], "0 to 3"),
    ([0, 2**40], "0 to 3"),
    ([0, 2**70], "0 to 3"),
    (np.array([2**63], dtype=np.uint64), "0 to 3"),
    ([1, 2, 1], "twice"),
    ([True, False], "shape (4,)"),
    (np.ones((4, 1), dtype=bool), "shape (4,)"),
    (np.ones(5, dtype=bool), "shape (4,)"),
    ([0.0, 1.0], "0 to 3"),
    (["0"], "0 to 3"),
    ([[0, 1]], "0 to 3"),
    ([[0], [1, 2]], "0 to 3"),
    (0, "0 to 3"),
    ("all", "0 to 3"),
    (object(), "0 to 3"),
    (np.empty((0, 2), dtype=np.int64), "0 to 3"),
]
CALLS = {
    "reset": lambda sim, worlds: sim.reset(worlds),
    "save": lambda sim, worlds: sim.save(worlds),
    "hash": lambda sim, worlds: sim.hash(worlds),
    "restore": lambda sim, worlds: sim.restore(sim.save([0, 1, 2]), worlds),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("worlds", "allowed"), WORLDS, ids=repr)
def test_bad_worlds_are_named_and_nothing_changes(call: Any, worlds: Any, allowed: str) -> None:
    with doorstep.Simulator(4) as sim:
        before = sim.hash()
        with pytest.raises(doorstep.ArgumentError) as caught:
            call(sim, worlds)
        assert caught.value.argument == "worlds"
        assert allowed in str(caught.value)
        assert sim.hash() == before


@pytest.mark.parametrize("data", ["text", None, 5, [1, 2], object()], ids=repr)
def test_restore_of_something_that_is_not_bytes_names_data(data: Any) -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError, match="bytes-like") as caught:
        sim.restore(data)
    assert caught.value.argument == "data"


@pytest.mark.parametrize("timeout", [-1, -0.5, float("nan"), float("inf"), "1", True, [1]], ids=repr)
def test_bad_timeouts_are_named(timeout: Any) -> None:
    with doorstep.Simulator(2) as sim:
        event = sim.step_async()
        with pytest.raises(doorstep.ArgumentError, match="seconds") as caught:
            event.wait(timeout)
        assert caught.value.argument == "timeout"


def test_a_flat_observation_that_was_not_asked_for_names_flat_observations() -> None:
    with doorstep.Simulator(2) as sim:
        assert "observations" not in sim.tensors
        for name in ("observations", "final_observations"):
            with pytest.raises(doorstep.ArgumentError, match=f"'{name}'") as caught:
                getattr(sim, name)
            assert caught.value.argument == "flat_observations"


def test_tensors_cannot_be_replaced() -> None:
    with doorstep.Simulator(2) as sim:
        with pytest.raises(AttributeError):
            sim.actions = np.zeros((2, 2, 4))  # type: ignore[misc,assignment]
        with pytest.raises(TypeError):
            sim.tensors["actions"] = sim.rewards  # type: ignore[index]
