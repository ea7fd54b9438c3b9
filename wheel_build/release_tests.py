"""Runs the release's own tests, those of [tool.cibuildwheel] in pyproject.toml, on the wheel at hand.

    python wheel_build/release_tests.py build/environments/release dist/doorstep-*.whl

As in a release: in an environment of exactly the release's dependency groups, and in a folder that has what the source
distribution has, and no build/. `make wheels` does the same in a container, with every interpreter.

Runs in an environment with the dependency group `build` of pyproject.toml.
"""

from __future__ import annotations

import os
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import environment
from build_steps import BuildError, run
from container_wheels import pack_sources

if sys.version_info >= (3, 11):
    import tomllib
else:  # hatchling brings the package of the same functions
    import tomli as tomllib


def test_release(folder: Path, wheel: Path) -> None:
    """Install the wheel into the environment in `folder`, and run the release's command."""
    settings: dict[str, Any] = tomllib.loads(environment.PYPROJECT.read_text(encoding="utf-8"))["tool"]["cibuildwheel"]
    environment.prepare(folder, settings["test-groups"])
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run([*pip, "install", "--force-reinstall", "--no-deps", str(wheel)])
    run([*pip, "install", str(wheel)])
    with tempfile.TemporaryDirectory() as unpacked:
        with tarfile.open(pack_sources(Path(unpacked))) as sources:
            sources.extractall(unpacked)
        (project,) = (path for path in Path(unpacked).iterdir() if path.is_dir())
        variables = {**os.environ, "PATH": os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])}
        # Here a missing dependency is what is tested.
        variables.pop("DOORSTEP_REQUIRE_ALL", None)
        run(["bash", "-c", settings["test-command"].replace("{project}", str(project))], variables, Path(unpacked))


def main() -> None:
    """Test the wheel that is named second in the environment that is named first."""
    try:
        test_release(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
    except BuildError as error:
        sys.exit(f"doorstep: {error}")


if __name__ == "__main__":
    main()
