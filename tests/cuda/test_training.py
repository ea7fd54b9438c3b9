"""The training kernels on a GPU: the CPU's bits, on the given stream, once they are prepared."""

from __future__ import annotations

import ctypes

import pytest
from tests.cuda import stand_in_driver
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.training_calls import DTYPES, advantages, assert_same, multi_discrete, prepared, run_on_cpu, run_on_gpu

import doorstep
from doorstep import cuda
from doorstep._native import check, load


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["generalized_advantages", "v_trace"])
@pytest.mark.parametrize("num_columns", [1, 64, 1000])
@on_stand_in()
def test_advantages_are_the_cpus(name: str, dtype: str, num_columns: int) -> None:
    with prepared():
        assert_same(name, advantages(dtype, 9, num_columns))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_rows", [1, 64, 1000])
@on_stand_in()
def test_multi_discrete_actions_are_the_cpus(dtype: str, num_rows: int) -> None:
    with prepared():
        for name in ("sample", "evaluate", "backward"):
            call, inputs, results = multi_discrete(dtype, num_rows, draws=name == "sample")
            unused = {"sample", "evaluate"} if name == "backward" else {"backward"}
            results = {
                field: array
                for field, array in results.items()
                if ("backward" in unused) != (field == "logit_gradients")
            }
            assert_same(f"multi_discrete_{name}", (call, inputs, results))


@on_stand_in()
def test_what_is_not_prepared_is_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="not prepared on device 0"):
        run_on_gpu("generalized_advantages", *advantages("float32", 2, 3))
    with pytest.raises(doorstep.ArgumentError, match="not prepared"):
        check(load().ds_training_release(0))


@on_stand_in()
def test_kernels_are_kept_until_they_are_released_as_often_as_prepared() -> None:
    with prepared():
        with prepared():
            pass
        assert_same("v_trace", advantages("float64", 3, 5))
    with pytest.raises(doorstep.ArgumentError, match="not prepared"):
        run_on_gpu("v_trace", *advantages("float64", 3, 5))


@on_stand_in()
def test_a_launch_may_be_recorded() -> None:
    call, inputs, results = advantages("float32", 4, 70)
    expected = run_on_cpu("generalized_advantages", call, inputs, results)
    with prepared(), stand_in_driver.users_stream() as stream:
        call.device_kind, call.stream = 1, stream
        buffers = {field: cuda.Buffer(array.nbytes) for field, array in (inputs | results).items()}
        for field, array in inputs.items():
            buffers[field].copy_from_host(array)
        for field, buffer in buffers.items():
            setattr(call, field, buffer.pointer)
            buffer.stream.synchronize()
        with stand_in_driver.RecordedGraph(stream) as graph:
            check(load().ds_generalized_advantages(ctypes.byref(call)))
        graph.launch()
        stand_in_driver.synchronize(stream)
        graph.close()
        found = buffers["targets"].copy_to_host("float32")
        assert found.tobytes() == expected["targets"].tobytes()


def prepare_and_run() -> None:
    check(load().ds_training_prepare(0))
    try:
        run_on_gpu("generalized_advantages", *advantages("float32", 2, 3))
    finally:
        check(load().ds_training_release(0))


@pytest.mark.parametrize("function", ["cuModuleLoadDataEx", "cuModuleGetFunction", "cuLaunchKernel"])
@on_stand_in()
def test_a_driver_that_refuses_is_reported_and_nothing_is_left(function: str) -> None:
    stand_in_driver.fail(function, 1, 999)
    with pytest.raises(doorstep.DeviceError, match=function):
        prepare_and_run()
    stand_in_driver.clear()
    with prepared():
        assert_same("generalized_advantages", advantages("float32", 2, 3))


@on_stand_in()
def test_memory_of_the_host_is_refused_by_the_stand_in() -> None:
    stand_in_driver.expect_violations()
    call, inputs, results = advantages("float32", 2, 3)
    with prepared():
        call.device_kind = 1
        for field, array in (inputs | results).items():
            setattr(call, field, array.ctypes.data)
        with pytest.raises(doorstep.DeviceError):
            check(load().ds_generalized_advantages(ctypes.byref(call)))
