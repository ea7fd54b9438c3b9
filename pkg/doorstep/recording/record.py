"""`record()`: plays worlds with a policy and records them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import numpy as np

from doorstep._arguments import check_integer, named
from doorstep.levels.choice import AnyLevels, table_levels
from doorstep.levels.rules import Rewards
from doorstep.policy import SamplingParams, load_policy
from doorstep.policy.loading import AnyPolicy, observations_for
from doorstep.policy.playing import Player
from doorstep.recording.recording import Recording
from doorstep.recording.writer import RecordingWriter, whole_recording
from doorstep.simulator import Simulator


@named
def record(
    path: str | os.PathLike[str],
    *,
    policy: AnyPolicy = "random",
    sampling: SamplingParams | None = None,
    levels: AnyLevels = "reference",
    reward: Rewards | None = None,
    steps: int | None = None,
    num_worlds: int = 1,
    num_agents: int = 2,
    seed: int = 0,
    device: str = "cpu",
    episode_length: int = 200,
) -> Recording:
    """Plays worlds with a policy, records them, and opens the recording.

    >>> import doorstep, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.rec")
    >>> recording = doorstep.record(path, policy="scripted", seed=3)
    >>> recording.replay()
    >>> recording.render(f"{path}.html")

    Args:
        path: the file; one that exists is replaced at the end.
        policy: what chooses the actions: whatever `doorstep.load_policy()` takes.
        sampling: how a network chooses, as in `load_policy()`.
        levels, reward: what is played, and what agents are rewarded for, as in `Simulator`.
        steps: how many are recorded, over as many episodes as they take; None: one episode of each world, at whose end
            the world stands still.
        num_worlds, num_agents, seed, device, episode_length: as in `Simulator`.

    Raises:
        ArgumentError: an argument is refused.
        StateError: the policy or the levels cannot be read.
        DeviceError: the device cannot be used.
        OSError: a file cannot be read or written.
    """
    num_steps = None if steps is None else check_integer("steps", steps, 1, 2**31)
    found = load_policy(policy, sampling=sampling)
    table = table_levels(levels)
    with Simulator(
        num_worlds,
        seed=seed,
        num_agents=num_agents,
        device=device,
        episode_length=episode_length,
        auto_reset=num_steps is not None,
        reward=reward,
        observations=observations_for(found),
        max_levels=len(table),
    ) as sim:
        if table:
            sim.set_levels(table)
        player = Player(found, sim, policy if isinstance(policy, str) else "")
        with whole_recording(path, sim) as writer:
            for _ in take_steps(sim, writer, player.act, num_steps):
                pass
    return Recording(path)


def take_steps(
    sim: Simulator, writer: RecordingWriter, act: Callable[[], None], num_steps: int | None
) -> Iterator[int]:
    """Takes steps that are recorded, and yields the number of each; None: one episode of each world.

    act: sets the actions of a step.
    """
    if sim.config.max_levels:
        writer.reset()  # all worlds begin with the levels; after sim.reset() the file would need their save
    ended = np.zeros(sim.num_worlds, np.bool_)
    for step in itertools.count(1):
        act()
        writer.step()
        yield step
        ended |= sim.dones.copy_to_host().any(axis=(1, 2))
        if step == num_steps or (num_steps is None and ended.all()):
            return
