"""A substitute for the manylinux image if no container registry can be reached: Debian, with several Pythons.

It has what cibuildwheel expects of a manylinux image: interpreters in /opt/python, each with pip and build. It has no
compiler and a newer C library; its output is a manylinux wheel because doorstep uses its own pinned compiler. Packages
come from the archive that this machine's apt is configured for.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

from build_steps import BuildError, run, say
from container_engine import Podman

PROGRAMS = ("mmdebstrap",)
# The image is built from the newest suite; older interpreters come from older suites and run there, too.
SUITES = ("forky", "bookworm")
PYTHONS = ("3.11", "3.13", "3.14")
# Without the packages python3.*-venv: that of an older suite depends on the suite's python3.
PACKAGES = (*(f"python{version}" for version in PYTHONS), "ca-certificates", "python3-build", "python3-pip-whl")
PIP = "/usr/share/python-wheels/pip-*.whl"
UTILITY_PYTHON = "/opt/python/cp39-cp39"  # cibuildwheel runs its helpers with it
REPOSITORY = "localhost/doorstep-wheels"
# The settings of this machine's apt for fetching: proxies, and timeouts.
FETCH_SETTING = re.compile(r'Acquire::(?:https?::.+|Check-Valid-Until|Check-Date|Retries) "[^"]+";')


def identifiers() -> set[str]:
    """The interpreters of the image, as cibuildwheel names them."""
    return {f"{_tag(version)}-manylinux_x86_64" for version in PYTHONS}


def make(podman: Podman) -> str:
    """The name of the image; builds it if podman does not have it."""
    archive = debian_archive()
    options = bootstrap_options(fetch_settings(_output(["apt-config", "dump"])))
    image = f"{REPOSITORY}:{hashlib.sha256(' '.join([archive, *options]).encode()).hexdigest()[:16]}"
    if image in podman.output("images", "--format", "{{.Repository}}:{{.Tag}}").split():
        return image
    say(f"building a container image with Python {', '.join(PYTHONS)} from Debian's packages, which takes minutes")
    with tempfile.TemporaryDirectory() as folder:
        packed = str(Path(folder) / "image.tar")
        sources = [f"deb {archive} {suite} main" for suite in SUITES]
        run(["mmdebstrap", *options, SUITES[0], packed, *sources], podman.environment)
        podman.run("import", "--quiet", packed, image)
    return image


def debian_archive() -> str:
    """The address that this machine's apt gets Debian from."""
    if archive := _archive_of(_index_targets()):
        return archive
    if os.geteuid() == 0:  # the lists may not have been fetched yet
        run(["apt-get", "update"])
    if archive := _archive_of(_index_targets()):
        return archive
    raise BuildError(
        "apt of this machine has no lists of a Debian archive; if it is configured for one, run as root: apt-get update"
    )


def _index_targets() -> str:
    """The archives that apt is configured for: a line for each list of packages."""
    fields = "$(ORIGIN)\t$(COMPONENT)\t$(CODENAME)\t$(REPO_URI)"
    return _output(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"])


def _archive_of(targets: str) -> str | None:
    for line in targets.splitlines():
        origin, component, codename, address = line.split("\t")
        # Suites with a dash are updates, which may be on other servers.
        if origin == "Debian" and component == "main" and "-" not in codename:
            return address
    return None


def fetch_settings(dump: str) -> list[str]:
    """The settings for fetching in the output of `apt-config dump`."""
    return [line for line in dump.splitlines() if FETCH_SETTING.fullmatch(line)]


def bootstrap_options(settings: list[str]) -> list[str]:
    """Options of mmdebstrap; `settings` are for apt."""
    return [
        "--variant=apt",
        f"--include={','.join(PACKAGES)}",
        *(f"--aptopt={setting}" for setting in settings),
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "locale", "man")),
        *(f"--customize-hook={command}" for version in PYTHONS for command in _interpreter(version)),
        f'--customize-hook=ln -s {_folder(PYTHONS[0])} "$1{UTILITY_PYTHON}"',
    ]


def _interpreter(version: str) -> list[str]:
    """Shell commands that install an interpreter where cibuildwheel expects it; $1 is the root of the image."""
    folder = f"/opt/python/{_folder(version)}"
    return [
        # With the system's packages, because cibuildwheel needs build.
        f'chroot "$1" python{version} -m venv --system-site-packages --without-pip {folder}',
        f'chroot "$1" sh -c "PYTHONPATH=\\$(echo {PIP}) {folder}/bin/python -m pip install --quiet --no-index {PIP}"',
    ]


def _tag(version: str) -> str:
    return f"cp{version.replace('.', '')}"


def _folder(version: str) -> str:
    return f"{_tag(version)}-{_tag(version)}"


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"a Debian archive to make a container image from is found with apt: {error}") from error
