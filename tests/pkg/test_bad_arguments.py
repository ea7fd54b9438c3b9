"""A bad argument raises ArgumentError, which names it, its value and the range; nothing has changed or leaked."""

import types

import numpy as np
import pytest
from tests.driver import no_driver
from tests.refuses import assert_refused, refuses

import doorstep

NOT_INTEGERS = [1.5, 2.0, np.float32(3), "8", b"8", [1], True, np.True_, np.arange(2)]
CONSTRUCTOR = [
    ("num_worlds", [0, -1, 2**30 + 1, 2**70, np.int64(0), None, *NOT_INTEGERS], "1 to 1073741824"),
    ("seed", [-1, 2**32, 2**64], "0 to 4294967295"),
    ("world_offset", [-1, 2**32 - 1, 2**63], "0 to 4294967294"),
    ("num_agents", [0, 9, -(2**70)], "1 to 8"),
    ("episode_length", [0, 1_000_001, 2**32 + 200], "1 to 1000000"),
    ("num_threads", [0, -1, 1025], "1 to 1024"),
    ("stream", [0, 1, 2**64], "None with device='cpu'"),
    ("auto_reset", [1, 0, "yes", None], "True or False"),
    ("observations", [["lidar"][0], 5, [], None, {"lidar": 1}], "a sequence of parts"),
    ("action_check", ["CLAMP", "", 0, None, ["off"]], "'clamp', 'raise', 'off'"),
    ("device", ["gpu", "cpu:0", "auto:1", "cuda:", "", 0, None], "'cpu', 'cuda', 'cuda:K' (K = 0, 1, ...) or 'auto'"),
    ("cameras", [64, [64], doorstep.Cameras, "raycast"], "doorstep.Cameras or None"),
    ("device", ["cuda:-1", "cuda:x", "cuda:\u0663", "cuda:" + "9" * 30], "'cuda:K' (K = 0, 1, ...) or 'auto'"),
]


def test_constructor_names_argument_value_and_range():
    for name, values, allowed in CONSTRUCTOR:
        rows = [({"num_worlds": 2, name: value}, f"{name} is {value!r}"[:50] + f" ... {allowed}") for value in values]
        assert_refused(doorstep.Simulator, rows)
    for few_or_many in ((), (2, 0)):  # all but the first are by keyword
        refuses(None, doorstep.Simulator, *few_or_many, error=TypeError)


def test_a_stream_that_is_none_is_refused_before_a_driver_is_looked_for():
    def foreign(described):
        return types.SimpleNamespace(__cuda_stream__=described)

    rows = [
        *((value, "0 to 18446744073709551614") for value in (-1, 2**64 - 1, 2**70, foreign((0, -1)))),
        *((value, "__cuda_stream__") for value in (1.5, "8", True, foreign((0, None)))),
        *((foreign(value), "(0, handle)") for value in ((1, 5), 5, (0,))),
        (types.SimpleNamespace(cuda_stream="7"), "__cuda_stream__"),
    ]
    assert_refused(lambda stream: doorstep.Simulator(2, device="cuda", stream=stream), rows, argument="stream")
    other = types.SimpleNamespace(cuda_stream=7, device=types.SimpleNamespace(index=1))
    rows = [({"device": "cuda:0", "stream": other}, "it is a stream of cuda:1")]
    stream = foreign(lambda: (0, 7))
    rows += [({"device": kind, "stream": stream}, f"with device='{kind}' ... cuda:K") for kind in ("cpu", "auto")]
    assert_refused(lambda **rules: doorstep.Simulator(2, **rules), rows)


@no_driver
def test_without_a_driver_a_gpu_is_an_error_that_says_what_to_do_and_the_automatic_device_is_the_cpu():
    for device in ("cuda", "cuda:0", "cuda:7"):
        with pytest.raises(doorstep.NoDriverError, match=r"libcuda\.so\.1") as caught:
            doorstep.Simulator(2, device=device, stream=7 if device == "cuda" else None)
        assert "NVIDIA driver" in caught.value.hint
    with doorstep.Simulator(2, device="auto") as sim:
        assert (sim.device, sim.stream) == ("cpu", None)
        sim.step()


def test_bad_worlds_are_named_and_nothing_changes():
    rows = [
        *((worlds, "0 to 3") for worlds in ([4], [-1], [0, 2**70], np.array([2**63], np.uint64), [0.0, 1.0], ["0"])),
        *((worlds, "0 to 3") for worlds in ([[0, 1]], [[0], [1, 2]], 0, "all", object, np.empty((0, 2), np.int64))),
        ([1, 2, 1], "twice"),
        *((worlds, "shape (4,)") for worlds in ([True, False], np.ones((4, 1), bool), np.ones(5, bool))),
    ]
    with doorstep.Simulator(4) as sim:
        before, saved = sim.hash(), sim.save([0, 1, 2])
        for call in (sim.reset, sim.save, sim.hash, lambda worlds: sim.restore(saved, worlds)):
            assert_refused(call, rows, argument="worlds")
        rows = [(data, "bytes-like") for data in ("text", None, 5, [1, 2], object)]
        assert_refused(sim.restore, rows, argument="data")
        assert sim.hash() == before
        event = sim.step_async()
        rows = [(timeout, "seconds") for timeout in (-1, float("nan"), float("inf"), 10**400, "1", True, [1])]
        assert_refused(event.wait, rows, argument="timeout")
        with pytest.raises(TypeError):
            sim.tensors["actions"] = sim.rewards
