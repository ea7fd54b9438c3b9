"""A live view of worlds in a browser: `doorstep.view()`, and `doorstep view`.

The page is served by [viser](https://viser.studio), which the extra `view` installs; only this package imports it. It
runs a `Viewer`, which owns the simulator; what people do in the page reaches it as requests.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from doorstep._arguments import named
from doorstep._level_table import REFERENCE
from doorstep._optional import import_optional
from doorstep.levels.choice import AnyLevels, table_levels
from doorstep.levels.rules import Rewards
from doorstep.policy.loading import AnyPolicy
from doorstep.policy.sampling import SamplingParams
from doorstep.simulator import Simulator

__all__ = ["view"]


@named
def view(
    policy: AnyPolicy = "random",
    *,
    levels: AnyLevels = REFERENCE,
    reward: Rewards | None = None,
    worlds: int = 1,
    num_agents: int = 2,
    seed: int = 0,
    device: str = "cpu",
    episode_length: int = 200,
    sampling: SamplingParams | None = None,
    rate: float = 20.0,
    keep_running: bool = False,
    host: str = "127.0.0.1",
    port: int = 8080,
    allow_hosts: Sequence[str] = (),
) -> None:
    """Shows worlds live in a browser until Ctrl-C, as `doorstep view` does; prints the address.

        doorstep.view("trained", levels="curated")

    Args:
        policy: what acts, as in `load_policy()`; people can take over an agent in the page.
        levels, reward: what is played, and what agents are rewarded for, as in `Simulator`.
        worlds: number of worlds; at most 64 are shown at once.
        num_agents, seed, device, episode_length: as in `Simulator`.
        sampling: how a network chooses actions, as in `load_policy()`.
        rate: steps per second; 0: paused until a step is asked for.
        keep_running: also step while no browser shows the page.
        host: address to listen on; "0.0.0.0": all networks.
        port: to listen on; 0: any free one.
        allow_hosts: names by which browsers may reach the page, besides addresses and this machine's own: those of
            proxies, such as "machine.example".

    Raises:
        LibraryError: viser is missing: pip install "doorstep[view]".
        ArgumentError: an argument is refused, or the port is in use.
        StateError, OSError: the policy or the levels cannot be read.
        DeviceError: the device cannot be used.
    """
    show(
        policy=policy,
        sampling=sampling,
        levels=tuple(table_levels(levels)),
        reward=reward,
        worlds=worlds,
        agents=num_agents,
        seed=seed,
        device=device,
        episode_length=episode_length,
        rate=rate,
        keep_running=keep_running,
        host=host,
        port=port,
        allow_hosts=allow_hosts,
    )


def show(**settings: Any) -> None:
    """Serves the page with these `Settings`, if there is viser."""
    server = _server()
    server.serve(server.Settings(**settings))


def open_window(sim: Simulator, rate: float) -> Any:
    """A `Window`, if there is viser."""
    return _server().Window(sim, rate)


def _server() -> Any:
    """The module that imports viser."""
    import_optional("viser", "the viewer needs viser", "view")
    return importlib.import_module("doorstep.viewer.server")
