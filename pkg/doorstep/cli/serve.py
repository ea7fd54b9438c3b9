"""`doorstep serve`: offers a rollout engine and its metrics over HTTP."""

from __future__ import annotations

import argparse
from pathlib import Path

from doorstep.cli.argument_types import (
    COUNT,
    FILE,
    LEVELS,
    POLICIES,
    add_allow_host_argument,
    add_device_argument,
    add_threads_argument,
)
from doorstep.errors import ArgumentError

# Short options, and the fields of RolloutConfig that they are.
_SHORT = {"agents": "simulator.num_agents", "device": "simulator.device", "threads": "simulator.num_threads"}

_CALLS = "(POST /episodes, GET /metrics, GET /info; Ctrl-C ends it)"

SUMMARY = "Offer a rollout engine over HTTP: play episodes that clients ask for, and show its metrics."

EXAMPLES = (
    "doorstep serve --policy trained --worlds 256",
    "doorstep serve --policy runs/7 --host 0.0.0.0 --token-file token.txt devices=cpu,cpu",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    said = "change a field of the engine, such as scheduler.type=priority; the fields are those of a RolloutConfig"
    add("changes", nargs="*", metavar="KEY=VALUE", help=said)
    said = f"{POLICIES}; give the option several times to offer several, which clients name by this text (random)"
    add("--policy", action="append", dest="policies", metavar="POLICY", help=said)
    add("--levels", default="reference", metavar="LEVELS", help=f"what is played: {LEVELS} (reference)")
    add("--worlds", **COUNT, default=256, help="worlds that are stepped at once (256)")
    add("--agents", **COUNT, default=2, help="agents in each world, 1-8 (2)")
    add_device_argument(parser)
    add_threads_argument(parser)
    add("--host", default="127.0.0.1", help="address to listen on; others than this machine's need a token (127.0.0.1)")
    add("--port", type=int, default=8000, metavar="N", help="port to listen on; 0 chooses a free one (8000)")
    add("--token-file", **FILE, help="a file with the token that clients must send")
    add_allow_host_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serves until Ctrl-C or SIGTERM."""
    from doorstep._configs.changes import apply_changes, split_changes
    from doorstep.config import SimulatorConfig
    from doorstep.rollouts import RolloutConfig, RolloutEngine
    from doorstep.serve import serve

    given = {path: value for name, path in _SHORT.items() if (value := getattr(arguments, name)) is not None}
    given |= split_changes(arguments.changes)
    config = apply_changes(RolloutConfig(SimulatorConfig(arguments.worlds)), given)
    token = _token_of(arguments.token_file)
    with RolloutEngine(config, levels=arguments.levels) as engine:
        engine.policies.update({text: text for text in arguments.policies or ["random"]})
        where = {"host": arguments.host, "port": arguments.port, "allow_hosts": arguments.allow_hosts}
        serve(engine, **where, token=token, on_start=lambda url: print(url, _CALLS, flush=True))
    return 0


def _token_of(path: Path | None) -> str | None:
    try:
        return None if path is None else path.read_text("utf-8").strip()
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path} holds no text: {error}", argument="token_file") from error
