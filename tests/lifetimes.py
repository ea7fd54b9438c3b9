"""Simulators, environments and engines that are created, used a little and closed, many times: nothing may remain.

`python -m tests.soak --lifetimes 100000` runs it.
"""

import time

from tests.leaks import Process, resident_bytes

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig

LOOK_EVERY = 500  # lives of each kind
MOST_GROWTH = 8 << 20  # bytes of resident memory, by a line through the last two thirds of the looks


def simulator_lives(number):
    with doorstep.Simulator(2, seed=number, num_threads=1 + number % 2) as sim:
        sim.step()


def environment_lives(number):
    from doorstep.envs.vector import EscapeRoomVectorEnv

    environment = EscapeRoomVectorEnv(2, num_threads=1 + number % 2)
    environment.reset(seed=number)
    environment.step(environment.action_space.sample())
    environment.close()


def engine_lives(number):
    with RolloutEngine(RolloutConfig(SimulatorConfig(1, num_threads=1))) as engine:
        engine.submit(EpisodeRequest(seed=number, max_steps=2))
        if number % 2:  # otherwise it is closed with an unanswered request
            next(iter(engine))


# Environments need gymnasium.
KINDS = {"simulators": simulator_lives, "environments": environment_lives, "engines": engine_lives}


def live_and_end(kind, count):
    """Creates and closes `count` of a kind, prints what that took, and returns what remained of them."""
    live = KINDS[kind]
    for number in range(LOOK_EVERY):
        live(number)
    process, begin, troubles = Process(), time.monotonic(), []
    for number in range(count):
        live(number)
        if number % LOOK_EVERY == LOOK_EVERY - 1:
            troubles += process.leaks()
    if (growth := process.growth()) > MOST_GROWTH:
        troubles.append(f"resident memory has grown by {growth / 2**20:.1f} MiB")
    memory = f"resident memory {resident_bytes() >> 20} MiB, growth {growth / 2**20:+.2f} MiB"
    print(f"{count} {kind} created and closed in {time.monotonic() - begin:.0f} s; {memory}", flush=True)
    return [f"{kind}: {trouble}" for trouble in troubles]
