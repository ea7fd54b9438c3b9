"""Runs cibuildwheel, which builds the wheel from the sdist in a container and tests it there with each interpreter.

    python wheel_build/container_wheels.py wheelhouse

pyproject.toml says what is built and tested, and how. This runs it with podman, which is installed first if this is
root on a machine with apt-get. Containers use the package index that pip of this machine uses. The image is
CIBW_MANYLINUX_X86_64_IMAGE; without that, it is made here from Debian's packages, and interpreters that Debian does not
have are left out.

Runs in an environment with the dependency group `wheels` of pyproject.toml.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import container_engine
import package_index
import repair_wheel
import stand_in_image
from build_steps import BuildError, exclusive, run, say

PROJECT = Path(__file__).resolve().parent.parent
IMAGE_VARIABLE = "CIBW_MANYLINUX_X86_64_IMAGE"


def build(output: Path, cache: Path) -> None:
    """Run cibuildwheel; containers and images are kept in `cache`."""
    image_is_named = bool(os.environ.get(IMAGE_VARIABLE))
    programs = () if image_is_named else stand_in_image.PROGRAMS
    container_engine.require_programs([*container_engine.PROGRAMS, *programs])
    variables = package_index.index_variables()
    with exclusive(cache), tempfile.TemporaryDirectory() as folder:
        podman = container_engine.configure(cache, variables, package_index.local_paths(variables))
        podman.run("rm", "--all", "--force")  # left by an interrupted run
        environment = wheel_environment(podman.environment)
        sources = pack_sources(Path(folder))
        if not image_is_named:
            chosen = _chosen_identifiers(sources, environment)
            environment["CIBW_BUILD"] = " ".join(available(chosen, stand_in_image.identifiers()))
            environment[IMAGE_VARIABLE] = stand_in_image.make(podman)
        run(_cibuildwheel(sources, "--output-dir", str(output)), environment)


def wheel_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of cibuildwheel; the caller's variables take precedence."""
    return {
        # cibuildwheel would show the whole file system of this machine to the container.
        "CIBW_CONTAINER_ENGINE": "podman; disable_host_mount: true",
        "SOURCE_DATE_EPOCH": repair_wheel.SOURCE_DATE_EPOCH,
        **environment,
    }


def available(chosen: Iterable[str], offered: Iterable[str]) -> list[str]:
    """The chosen identifiers that the image offers; prints the others."""
    chosen, offered = list(chosen), set(offered)
    if missing := [identifier for identifier in chosen if identifier not in offered]:
        say(f"not in the image, neither built nor tested: {', '.join(missing)}")
    if found := [identifier for identifier in chosen if identifier in offered]:
        return found
    raise BuildError(
        f"pyproject.toml chooses {', '.join(chosen) or 'nothing'}, the image made here has "
        f"{', '.join(sorted(offered))}; name another image: {IMAGE_VARIABLE}=..."
    )


def pack_sources(folder: Path) -> Path:
    """The sdist: cibuildwheel copies all its input into the container, and the sdist must be sufficient."""
    run([sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)], folder=PROJECT)
    (sources,) = folder.glob("*.tar.gz")
    return sources


def _chosen_identifiers(sources: Path, environment: Mapping[str, str]) -> list[str]:
    """The builds and tests of cibuildwheel that pyproject.toml selects."""
    command = _cibuildwheel(sources, "--print-build-identifiers")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"exit status {done.returncode} of: {' '.join(command)}")
    return done.stdout.split()


def _cibuildwheel(sources: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "cibuildwheel", "--platform", "linux", "--archs", "x86_64", *options, str(sources)]


def _default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "doorstep" / "containers"


def main() -> None:
    """Build and test the wheel into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder that the wheel is put into")
    parser.add_argument("--cache", type=Path, default=_default_cache(), help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        build(arguments.output.resolve(), arguments.cache.resolve())
    except BuildError as error:
        sys.exit(f"doorstep: {error}")


if __name__ == "__main__":
    main()
