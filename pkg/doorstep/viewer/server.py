"""`serve`: runs the viewer, from the address that it prints to Ctrl-C, behind a gate that admits its own page only.

`Window` shows what a program steps itself.
"""

from __future__ import annotations

import contextlib
import errno
import io
import ipaddress
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import viser

from doorstep._callers import Guard
from doorstep._copies import Owner
from doorstep._level_table import REFERENCE
from doorstep._observations import AnyObservations
from doorstep.errors import ArgumentError
from doorstep.levels import Rewards
from doorstep.levels.files import AnyLevel
from doorstep.policy import SamplingParams, load_policy
from doorstep.policy.loading import AnyPolicy, observations_for
from doorstep.policy.playing import Player
from doorstep.recording import Recording
from doorstep.simulator import Simulator
from doorstep.viewer import keyboard
from doorstep.viewer.gate import open_gate, random_loopback
from doorstep.viewer.keyboard import Keyboard
from doorstep.viewer.page import Page
from doorstep.viewer.play import LivePlay, Play, RecordedPlay, SteppedPlay
from doorstep.viewer.viewer import Viewer
from doorstep.viewer.world_arrays import Layout

MOST_SHOWN = 64  # worlds on the page at once


@dataclass(frozen=True)
class Settings:
    """What to watch, and where to serve it; most names are those of the command's options.

    An open recording decides worlds, agents, seed, episode length, levels, reward and actions.
    """

    worlds: int = 1
    agents: int = 2
    seed: int = 0
    device: str = "cpu"
    episode_length: int = 200
    policy: AnyPolicy | None = "random"
    sampling: SamplingParams | None = None
    levels: tuple[AnyLevel, ...] = ()
    reward: Rewards | None = None
    recording: Recording | None = None
    rate: float = 20.0
    keep_running: bool = False
    host: str = "127.0.0.1"
    port: int = 8080
    allow_hosts: tuple[str, ...] = ()


def serve(settings: Settings) -> None:
    """Shows worlds in a browser until Ctrl-C.

    Raises:
        ArgumentError: a setting is out of range, the policy cannot be loaded, or the port is in use.
        StateError: the recording has saved worlds of another version of doorstep; or the file of the policy is refused.
        ReplayError: the worlds differ from those at the beginning of the recording.
        DeviceError: the device cannot be used.
    """
    handlers, interrupted = contextlib.ExitStack(), contextlib.suppress(KeyboardInterrupt)
    with opened(settings) as (viewer, server), handlers, interrupted:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):  # a shell's script starts programs that ignore SIGINT
                handlers.callback(signal.signal, number, signal.signal(number, signal.default_int_handler))
        print(f"{address(settings.host, server.get_port())}  (Ctrl-C ends it)", flush=True)
        viewer.run()


def address(host: str, port: int) -> str:
    """The URL by which a browser on this machine reaches a server that listens on `host`."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return f"http://{host}:{port}"
    if ip.is_unspecified:  # all addresses of this machine
        ip = ipaddress.ip_address("127.0.0.1" if ip.version == 4 else "::1")
    return f"http://{ip}:{port}" if ip.version == 4 else f"http://[{ip}]:{port}"


@contextlib.contextmanager
def opened(settings: Settings) -> Iterator[tuple[Viewer, viser.ViserServer]]:
    """A viewer that is ready to run, and the server of its page."""
    # first: what is wrong with it is said before a GPU is prepared
    policy = load_policy("random" if settings.policy is None else settings.policy, sampling=settings.sampling)
    with _simulator(settings, observations_for(policy)) as sim, _shown(sim, policy, settings) as both:
        yield both


@contextlib.contextmanager
def _shown(sim: Simulator, policy: Any, settings: Settings) -> Iterator[tuple[Viewer, viser.ViserServer]]:
    """policy: that plays, unless there is a recording; or what plays itself."""
    name = settings.policy if isinstance(settings.policy, str) else ""
    if settings.recording is not None:
        play: Play = RecordedPlay(sim, settings.recording)
    else:
        play = policy if isinstance(policy, SteppedPlay) else LivePlay(sim, Player(policy, sim, name).act)
    with _serving(settings) as server:
        layout = Layout.of(sim, min(sim.num_worlds, MOST_SHOWN))
        page, keys = Page(server, sim, play, layout, settings.rate), Keyboard()
        viewer = Viewer(sim, play, page, layout, keys, settings.rate, settings.keep_running)
        page.connect(viewer.requests, viewer)
        keyboard.connect(server, keys, lambda: viewer.requests.post(viewer.press_reset_key))
        viewer.prepare()
        try:
            yield viewer, server
        finally:
            viewer.close()


class Window(Owner):
    """A page, on a free port of this machine, with the worlds of a simulator that a program steps. Prints the address.

    Args:
        sim: the simulator.
        rate: steps per second, which the page can change.
    """

    def __init__(self, sim: Simulator, rate: float) -> None:
        self._play, self._open = SteppedPlay(), contextlib.ExitStack()
        settings = Settings(rate=rate, keep_running=True, port=0)
        self._viewer, server = self._open.enter_context(_shown(sim, self._play, settings))
        self.url = address(settings.host, server.get_port())
        print(self.url, flush=True)

    def show(self) -> None:
        """Shows the worlds as they are, and waits until the next step is due: while the page pauses, for ever."""
        self._play.is_due = True
        while self._play.is_due:
            self._viewer.requests.wait(self._viewer.tick(time.monotonic()))

    def close(self) -> None:
        self._open.close()


def _simulator(settings: Settings, observations: AnyObservations) -> Simulator:
    if (recording := settings.recording) is not None:
        return Simulator.from_config(recording.config.replace(device=settings.device), reward=recording.reward)
    return Simulator(
        settings.worlds,
        seed=settings.seed,
        num_agents=settings.agents,
        device=settings.device,
        episode_length=settings.episode_length,
        levels=settings.levels or REFERENCE,
        reward=settings.reward,
        observations=observations,
    )


# ---- Starting viser's server ----


class GuardedServer(viser.ViserServer):  # type: ignore[misc]
    """viser's server behind a gate. `get_port()` is the gate's, which people connect to."""

    def __init__(self, port: int) -> None:
        self.inner_host = random_loopback()
        self._gate_port = port
        super().__init__(host=self.inner_host, port=_free_port(self.inner_host, 0), label="doorstep", verbose=False)

    @property
    def inner(self) -> tuple[str, int]:
        """Where it listens itself."""
        return self.inner_host, super().get_port()

    def get_port(self) -> int:
        return self._gate_port


@contextlib.contextmanager
def _serving(settings: Settings) -> Iterator[viser.ViserServer]:
    """Runs viser's server, silently, behind a gate on exactly this port."""
    host, guard = settings.host, Guard(settings.host, settings.allow_hosts)
    port = _free_port(host, settings.port)
    with _quiet():
        server = GuardedServer(port)
    try:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(open_gate(host, port, server.inner, guard))
            except OSError:  # another process has taken the port meanwhile
                raise _port_in_use(host, port) from None
            yield server
    finally:
        with _quiet():
            server.stop()


def _free_port(host: str, port: int) -> int:
    """The port, if it is free; for 0 any free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            return int(probe.getsockname()[1])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise _port_in_use(host, port) from None
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        message = f"The page cannot be served on port {port} of {host!r}: {reason}."
        raise ArgumentError(message, argument="host", hint="Give another --host or --port.") from None


def _port_in_use(host: str, port: int) -> ArgumentError:
    hint = "Give another one with --port; --port 0 takes any that is free."
    return ArgumentError(f"Port {port} of {host} is in use.", argument="port", hint=hint)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()):
        yield
