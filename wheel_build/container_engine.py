"""Podman with its own storage and settings, and the system programs that containers need.

The machine's settings are not used: they may be missing, or not work inside a container.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from build_steps import BuildError, run, say

PROGRAMS = ("podman", "runc")
DRIVERS = ("overlay", "vfs")  # storage drivers; the second copies every file, and works everywhere
SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")  # may be missing from a user's search path
HIGHEST_PROCESS_ID = Path("/proc/sys/kernel/pid_max")


@dataclass(frozen=True)
class Podman:
    """Podman configured by `environment`; other programs with these variables use the same images."""

    environment: Mapping[str, str]

    def run(self, *arguments: str) -> None:
        """Run a podman command."""
        run(["podman", *arguments], self.environment)

    def output(self, *arguments: str) -> str:
        """The output of a podman command."""
        command = ["podman", *arguments]
        done = subprocess.run(command, env=self.environment, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise BuildError(f"exit status {done.returncode} of: {' '.join(command)}\n{done.stderr.strip()}")
        return done.stdout


def require_programs(names: Iterable[str]) -> None:
    """Install missing programs if possible, or raise with instructions; packages have the same names."""
    missing = [name for name in names if shutil.which(name, path=_search_path()) is None]
    if not missing:
        return
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if shutil.which("apt-get") is None:
        raise BuildError(f"there is no {' and no '.join(missing)} here, and no apt-get to install with")
    if os.geteuid() != 0:
        raise BuildError(f"there is no {' and no '.join(missing)} here; as root, run: {' '.join(install)}")
    say(f"installing {', '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update"], environment)
    run(install, environment)


def configure(folder: Path, variables: Mapping[str, str], mounts: Iterable[Path]) -> Podman:
    """Podman that stores everything in a folder; containers get the `variables`, and may read the `mounts`."""
    storage, containers = folder / "storage.conf", folder / "containers.conf"
    environment = {
        **os.environ,
        **variables,
        "PATH": _search_path(),
        "CONTAINERS_STORAGE_CONF": str(storage),
        "CONTAINERS_CONF": str(containers),
    }
    podman = Podman(environment)
    folder.mkdir(parents=True, exist_ok=True)
    containers.write_text(containers_settings(variables, mounts), encoding="utf-8")
    for driver in DRIVERS:
        storage.write_text(storage_settings(folder, driver), encoding="utf-8")
        try:
            podman.output("info")
        except BuildError:
            if driver == DRIVERS[-1]:
                raise
        else:
            break
    return podman


def storage_settings(folder: Path, driver: str) -> str:
    """The content of storage.conf."""
    values = {"driver": driver, "graphroot": str(folder / driver), "runroot": str(folder / f"{driver}-run")}
    return _section("storage", values)


def containers_settings(variables: Iterable[str], mounts: Iterable[Path]) -> str:
    """The content of containers.conf."""
    containers: dict[str, str | list[str]] = {
        # Values may contain passwords, so they stay in the environment.
        "env": list(variables),
        "volumes": [f"{path}:{path}:ro" for path in mounts],
        # Separate networks need permissions and kernel modules that a container may lack.
        "netns": "host",
        "default_ulimits": [f"nofile={_limit(resource.RLIMIT_NOFILE)}", f"nproc={_process_limit()}"],
    }
    # crun fails where limits cannot be raised. The machine may have no journal for events.
    return _section("containers", containers) + _section("engine", {"runtime": "runc", "events_logger": "none"})


def _section(name: str, values: Mapping[str, str | list[str]]) -> str:
    """TOML, in which strings and lists of strings are written as in JSON."""
    return "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""])


def _limit(kind: int) -> str:
    """Podman's default limits are higher; if a process may not raise its limits, no container would start with them."""
    most = resource.getrlimit(kind)[1]
    return f"{most}:{most}"


def _process_limit() -> str:
    most, highest = resource.getrlimit(resource.RLIMIT_NPROC)[1], int(HIGHEST_PROCESS_ID.read_text(encoding="ascii"))
    # Podman lowers its own limit to the highest process id, and cannot raise it again.
    most = highest if most == resource.RLIM_INFINITY else min(most, highest)
    return f"{most}:{most}"


def _search_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS])
