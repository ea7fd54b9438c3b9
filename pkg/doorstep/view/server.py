"""`serve`: the viewer from the address that it prints to Ctrl-C."""

from __future__ import annotations

import contextlib
import errno
import io
import ipaddress
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import viser

from doorstep.action_dump import read_action_dump
from doorstep.errors import ArgumentError
from doorstep.simulator import Simulator
from doorstep.view import origins, page_keys
from doorstep.view.keyboard import Keyboard
from doorstep.view.layout import Layout
from doorstep.view.page import Page
from doorstep.view.play import LivePlay, Play, Replay
from doorstep.view.policies import POLICIES
from doorstep.view.viewer import Viewer

MOST_SHOWN = 64  # worlds on the page at once


@dataclass(frozen=True)
class Settings:
    """What to watch, and where; the names are those of the command's options."""

    worlds: int = 1
    agents: int = 2
    seed: int = 5
    device: str = "cpu"
    episode_length: int = 200
    policy: str = "random"
    actions: Path | None = None
    rate: float = 20.0
    keep_running: bool = False
    host: str = "127.0.0.1"
    port: int = 8080


def serve(settings: Settings) -> None:
    """Shows worlds in a browser until it is interrupted.

    Raises:
        ArgumentError: a setting is out of range, or the port is not free.
        StateError: the recording is not of that many worlds and agents.
        DeviceError: the device cannot be used.
    """
    with opened(settings) as (viewer, server), contextlib.suppress(KeyboardInterrupt):
        print(f"{address(settings.host, server.get_port())}  (Ctrl-C ends it)", flush=True)
        viewer.run()


def address(host: str, port: int) -> str:
    """What to open in a browser on this machine to reach a server that listens there."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return f"http://{host}:{port}"
    if ip.is_unspecified:  # all addresses of this machine
        ip = ipaddress.ip_address("127.0.0.1" if ip.version == 4 else "::1")
    return f"http://{ip}:{port}" if ip.version == 4 else f"http://[{ip}]:{port}"


@contextlib.contextmanager
def opened(settings: Settings) -> Iterator[tuple[Viewer, viser.ViserServer]]:
    """A viewer that is ready to run, and the server that its page is on."""
    with _simulator(settings) as sim:
        play = _play(sim, settings)
        with _serving(settings.host, settings.port) as server:
            layout = Layout.of(sim, min(sim.num_worlds, MOST_SHOWN))
            page = Page(server, sim, play, layout, settings.rate)
            keyboard = Keyboard()
            viewer = Viewer(sim, play, page, layout, keyboard, settings.rate, settings.keep_running)
            page.connect(viewer.requests, viewer)
            page_keys.connect(server, keyboard, lambda: viewer.requests.post(viewer.press_reset_key))
            try:
                yield viewer, server
            finally:
                viewer.close()


def _simulator(settings: Settings) -> Simulator:
    return Simulator(
        settings.worlds,
        seed=settings.seed,
        num_agents=settings.agents,
        device=settings.device,
        episode_length=settings.episode_length,
    )


def _play(sim: Simulator, settings: Settings) -> Play:
    if settings.actions is None:
        return LivePlay(sim, POLICIES[settings.policy](sim))
    return Replay(sim, read_action_dump(settings.actions, sim.num_worlds, sim.num_agents))


@contextlib.contextmanager
def _serving(host: str, port: int) -> Iterator[viser.ViserServer]:
    """A server of viser that prints nothing. viser takes another port than it is told to, or waits for one forever."""
    port = _free_port(host, port)
    with _quiet(), origins.own_page_only(host):
        server = viser.ViserServer(host=host, port=port, label="doorstep", verbose=False)
    try:
        if server.get_port() != port:  # somebody was faster
            raise _port_in_use(host, port)
        yield server
    finally:
        with _quiet():
            server.stop()


def _free_port(host: str, port: int) -> int:
    """The port if it is free; a free one for 0."""
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
