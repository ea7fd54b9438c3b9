"""With PyTorch on a real GPU: shared memory, streams, graphs."""

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.gpu.frameworks import cuda_torch
from tests.scenes import random_actions

import doorstep

torch = cuda_torch()

LONG = 1_000_000_000  # clock cycles: about half a second
WORLDS = 1024


def drawn_actions(steps: int, seed: int = 0) -> Any:
    return torch.from_numpy(random_actions(seed, steps, WORLDS)).cuda()


def cpu_hash(actions: Any) -> int:
    with doorstep.Simulator(WORLDS) as cpu:
        for step_actions in actions.cpu().numpy():
            cpu.actions.to_numpy()[:] = step_actions
            cpu.step()
        return cpu.hash()


def test_tensors_are_the_same_memory() -> None:
    with doorstep.Simulator(WORLDS, device="cuda") as sim:
        for tensor in (*sim.tensors.values(), sim.state.body_positions, sim.state.agent_grabs):
            shared = tensor.to_torch()
            address = tensor.__cuda_array_interface__["data"][0]
            assert tuple(shared.shape) == tensor.shape
            assert shared.data_ptr() == address or shared.numel() == 0
            assert torch.as_tensor(tensor, device="cuda").data_ptr() == shared.data_ptr()
            assert (shared.cpu().numpy() == tensor.copy_to_host()).all()
        del shared


def test_steps_come_after_a_long_kernel_on_the_current_stream() -> None:
    actions = drawn_actions(5)
    with doorstep.Simulator(WORLDS, device="cuda") as sim, torch.cuda.stream(torch.cuda.Stream()):
        shared, rewards = sim.actions.to_torch(), []
        begin = sim.save()
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        for step_actions in actions:  # loads kernels and takes memory, which may wait for all work
            shared.copy_(step_actions)
            sim.step()
            rewards.append(sim.rewards.to_torch().clone())
        sim.restore(begin)
        rewards.clear()
        torch.cuda.current_stream().synchronize()
        torch.cuda._sleep(LONG)
        for step_actions in actions:
            shared.copy_(step_actions)
            sim.step()
            rewards.append(sim.rewards.to_torch().clone())
        assert sim.stream == torch.cuda.current_stream().cuda_stream
        assert not torch.cuda.current_stream().query(), "the long kernel was to be running still"
        torch.cuda.current_stream().synchronize()
        assert sim.hash() == cpu_hash(actions)
        del shared, rewards


def test_steps_on_one_stream_after_another_are_in_order() -> None:
    actions = drawn_actions(6, seed=1)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    with doorstep.Simulator(WORLDS, device="cuda") as sim:
        for step, step_actions in enumerate(actions):
            with torch.cuda.stream(streams[step % 2]):
                torch.cuda._sleep(LONG // 10)
                sim.actions.to_torch().copy_(step_actions)
                sim.step()
        assert sim.hash() == cpu_hash(actions)


def test_a_given_stream_is_used_instead_of_the_current_one() -> None:
    actions = drawn_actions(4, seed=2)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with doorstep.Simulator(WORLDS, device="cuda", stream=stream) as sim:
        shared = sim.actions.to_torch()
        for step_actions in actions:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(LONG // 10)
                shared.copy_(step_actions)
            sim.step()
        assert sim.stream == stream.cuda_stream
        assert sim.hash() == cpu_hash(actions)
        del shared


def test_consumer_on_another_stream_waits_for_the_step() -> None:
    with doorstep.Simulator(WORLDS, device="cuda", stream=torch.cuda.Stream()) as sim:
        with torch.cuda.stream(torch.cuda.ExternalStream(sim.stream)):
            torch.cuda._sleep(LONG)
        sim.step()
        assert (sim.steps_remaining.to_torch() == 199).all()


def test_event_of_a_step_happens_after_it() -> None:
    with doorstep.Simulator(WORLDS, device="cuda") as sim:
        assert sim.step_async().wait(10.0)  # kernels are loaded
        torch.cuda._sleep(LONG)
        event = sim.step_async()
        assert not event.done
        assert not event.wait(0.0)
        assert event.wait(10.0)
        assert event.done
        torch.cuda.synchronize()


def test_replays_of_a_graph_are_steps() -> None:
    actions = drawn_actions(30, seed=3)
    chosen = torch.zeros_like(actions[0])
    with doorstep.Simulator(WORLDS, device="cuda", episode_length=11) as sim:
        shared, lidar = sim.actions.to_torch(), sim.lidar.to_torch()
        begin = sim.save()
        expected = []
        for step_actions in actions:
            shared.copy_(step_actions)
            sim.step()
            expected.append(lidar.clone())
        end = sim.hash()
        sim.restore(begin)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            shared.copy_(chosen)
            sim.step()
        for step_actions, lidar_then in zip(actions, expected, strict=True):
            chosen.copy_(step_actions)
            graph.replay()
            assert torch.equal(lidar, lidar_then)
        assert sim.hash() == end
        del graph, shared, lidar


def test_policy_and_step_in_one_graph() -> None:
    torch.manual_seed(0)
    with doorstep.Simulator(WORLDS, device="cuda") as sim:
        policy = torch.nn.Linear(sim.observations.shape[-1], 4).cuda()
        limits = torch.tensor([3.0, 7.0, 4.0, 1.0], device="cuda")
        seen, shared = sim.observations.to_torch(), sim.actions.to_torch()

        def play(seen: Any, shared: Any) -> None:
            with torch.no_grad():
                shared.copy_((policy(seen).sigmoid() * limits).round().int())
            sim.step()

        play(seen, shared)  # libraries initialise themselves outside the capture
        begin = sim.save()
        for _ in range(20):
            play(seen, shared)
        end = sim.hash()
        sim.restore(begin)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            play(seen, shared)
        for _ in range(20):
            graph.replay()
        assert sim.hash() == end
        del graph, seen, shared


def test_calls_that_cannot_be_captured_are_refused_and_the_capture_continues() -> None:
    with doorstep.Simulator(WORLDS, device="cuda") as sim, doorstep.Simulator(WORLDS) as cpu:
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for call in (sim.save, sim.hash, sim.wait, sim.rewards.copy_to_host):
                with pytest.raises(doorstep.DoorstepError):
                    call()
            sim.step()
        graph.replay()
        cpu.step()
        assert sim.hash() == cpu.hash()
        del graph


def test_a_simulator_that_ends_within_a_capture_leaves_it_alone() -> None:
    cycle: list[Any] = [doorstep.Simulator(64, device="cuda", num_agents=3)]  # the last of its kind
    cycle.append(cycle)
    cycle[0].step()
    with doorstep.Simulator(WORLDS, device="cuda") as sim, doorstep.Simulator(WORLDS) as cpu:
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            sim.step()
            del cycle
            gc.collect()
        graph.replay()
        cpu.step()
        assert sim.hash() == cpu.hash()
        del graph


def test_what_another_thread_waits_for_beside_a_capture_leaves_it_alone() -> None:
    with (
        doorstep.Simulator(WORLDS, device="cuda") as sim,
        doorstep.Simulator(WORLDS, device="cuda") as other,
        doorstep.Simulator(WORLDS) as cpu,
    ):
        event = other.step_async()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), ThreadPoolExecutor() as threads:
            sim.step()
            waits = [threads.submit(wait) for wait in (event.wait, lambda: event.wait(10.0), other.hash, other.wait)]
            for wait in waits:
                wait.result()
        graph.replay()
        cpu.step()
        assert sim.hash() == other.hash() == cpu.hash()
        del graph


BOTH_IMPORT_ORDERS = {
    "torch first": "import torch; torch.zeros(1).cuda(); import doorstep",
    "doorstep first": "import doorstep; import torch; torch.zeros(1).cuda()",
    "torch after a simulator": "import doorstep; sim = doorstep.Simulator(2, device='cuda'); import torch",
}


@pytest.mark.parametrize("order", BOTH_IMPORT_ORDERS)
def test_imports_in_any_order(order: str) -> None:
    code = BOTH_IMPORT_ORDERS[order] + (
        "\nwith doorstep.Simulator(64, device='cuda') as sim, doorstep.Simulator(64) as cpu:"
        "\n    shared = sim.actions.to_torch(); shared.fill_(1); cpu.actions.to_numpy()[:] = 1"
        "\n    sim.step(); cpu.step()"
        "\n    assert sim.hash() == cpu.hash()"
        "\n    assert shared.is_cuda"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr


def test_numpy_arrays_are_copies() -> None:
    with doorstep.Simulator(4, device="cuda") as sim:
        sim.actions.copy_from_host(np.ones((4, 2, 4), np.int32))
        shared = sim.actions.to_torch()
        assert (shared == 1).all()
        shared.zero_()
        assert not sim.actions.copy_to_host().any()
        del shared
