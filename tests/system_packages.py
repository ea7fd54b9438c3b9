"""System packages that the tests need: a Vulkan driver for the CPU, Vulkan's headers, and a browser.

    python -m tests.system_packages build/system

fetches them from Debian or Ubuntu into a folder, without root and without installing them. Tests read the folder from
DOORSTEP_TEST_SYSTEM; `make test` does both. Without apt-get, or without such a package in the distribution, the tests
that need it are skipped, or fail if DOORSTEP_REQUIRE_ALL is set (tests/skips.py); otherwise failing to fetch it is an
error. Ubuntu has no package chromium; GitHub's Ubuntu machines have Google Chrome, which works as well.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("chromium", "fonts-dejavu-core", "libvulkan-dev", "libvulkan1", "mesa-vulkan-drivers")
INSTALLED = Path("/var/lib/dpkg/status")  # installed packages are not fetched
STAMP = "fetched.txt"
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
BROWSERS = ("chromium", "google-chrome", "google-chrome-stable")


def vulkan_environment():
    """Variables that make a process draw only with lavapipe, Mesa's Vulkan driver for the CPU."""
    root = _root()
    driver, loader = _library(root, "libvulkan_lvp.so"), _library(root, "libvulkan.so.1")
    if driver is None or loader is None:
        pytest.skip("neither DOORSTEP_TEST_SYSTEM nor the machine has Mesa's Vulkan driver; make test fetches it")
    manifest = root / "lavapipe.json"
    if not manifest.exists():
        description = {"ICD": {"api_version": "1.3.0", "library_path": str(driver)}, "file_format_version": "1.0.0"}
        _write(manifest, json.dumps(description))
    names = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")  # read by loaders since 1.3.207, and before
    return {**_library_path(root), **dict.fromkeys(names, str(manifest))}


def vulkan_headers():
    """The folder with Khronos's headers of Vulkan; ../share/vulkan/registry has what they are generated from."""
    for folder in (_root() / "usr" / "include", Path("/usr/include")):
        if (folder / "vulkan" / "vulkan_core.h").exists():
            return folder
    pytest.skip("neither DOORSTEP_TEST_SYSTEM nor the machine has Vulkan's headers; make test fetches them")


def chromium():
    """A Chromium or Chrome; it needs chromium_environment()."""
    for path in map(shutil.which, (_root() / "usr/lib/chromium/chromium", *BROWSERS)):
        if path is not None:
            return Path(path)
    pytest.skip("neither DOORSTEP_TEST_SYSTEM nor the machine has Chromium; make test fetches it")


def chromium_options():
    """Arguments for a headless Chromium in a container without a GPU: WebGL is drawn on the CPU."""
    return ["--no-sandbox", "--disable-dev-shm-usage", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def chromium_environment():
    """Variables for Chromium: its library path, its font, and a separate home folder."""
    root = _root()
    fonts = root / "fonts.conf"
    if not fonts.exists():
        folders = "".join(f"<dir>{folder}</dir>" for folder in (root / "usr/share/fonts", "/usr/share/fonts"))
        _write(fonts, f"<fontconfig>{folders}<cachedir>{root / 'font-cache'}</cachedir></fontconfig>")
    return {**_library_path(root), "FONTCONFIG_FILE": str(fonts), "HOME": str(root / "home")}


def fetch(folder):
    """Fetch the packages and their dependencies that are not installed; does nothing if the folder has them."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        print("doorstep: no apt-get here: tests that need a Vulkan driver or a browser are skipped", flush=True)
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:  # two runs of the tests take turns
        fcntl.flock(lock, fcntl.LOCK_EX)
        identity = hashlib.sha256("\n".join(PACKAGES).encode() + INSTALLED.read_bytes()).hexdigest()
        stamp = folder / STAMP
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != identity:
            _replace(folder, identity)


def _replace(folder, identity):
    pending = folder.with_name(f"{folder.name}.pending")
    shutil.rmtree(pending, ignore_errors=True)
    root = pending / "root"
    root.mkdir(parents=True)
    print("doorstep: fetching a Vulkan driver and a browser for the tests (140 MB)", flush=True)
    for package in _download(pending / "apt"):
        _run(["dpkg-deb", "--extract", str(package), str(root)])
    _write(root / STAMP, identity)
    shutil.rmtree(folder, ignore_errors=True)
    root.rename(folder)
    shutil.rmtree(pending)


def _download(work):
    """The packages' files, fetched by apt with separate lists and cache."""
    settings = [f"Dir::{name}={work / name.lower()}" for name in ("Cache", "Log", "State")]
    settings += [f"Dir::State::status={INSTALLED}", "APT::Sandbox::User="]  # download as the current user
    settings += ["Acquire::Languages=none", "Acquire::Retries=3", "Debug::NoLocking=true", "quiet=2"]
    options = [f"--option={setting}" for setting in settings]
    archives = work / "cache" / "archives"
    for path in (archives / "partial", work / "state" / "lists" / "partial", work / "log"):
        path.mkdir(parents=True)
    # Also fails if an unrelated source cannot be read; missing packages are detected below.
    subprocess.run(["apt-get", *options, "update"], stdin=subprocess.DEVNULL, check=False)
    available = [name for name in PACKAGES if _has(options, name)]
    for name in sorted(set(PACKAGES) - set(available)):
        print(f"doorstep: this distribution has no package {name}", flush=True)
    if "mesa-vulkan-drivers" not in available:  # all distributions with apt have it
        sys.exit("doorstep: apt-get update failed, see above; to test without: make test DOORSTEP_TEST_SYSTEM=")
    _run(["apt-get", *options, "--yes", "--no-install-recommends", "--download-only", "install", *available])
    return sorted(archives.glob("*.deb"))


def _has(options, package):
    command = ["apt-cache", *options, "policy", package]
    policy = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "Candidate:" in policy and "Candidate: (none)" not in policy


def _run(command):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    if result.returncode != 0:
        sys.exit(f"doorstep: exit status {result.returncode} of: {' '.join(command)}")


def _root():
    folder = os.environ.get("DOORSTEP_TEST_SYSTEM")
    if not folder:
        pytest.skip("DOORSTEP_TEST_SYSTEM names no folder with a Vulkan driver and a browser; make test makes one")
    return Path(folder).resolve()


def _library(root, name):
    found = (folder / name for folder in (root / LIBRARIES, "/" / LIBRARIES, Path("/usr/lib64")))
    return next(filter(Path.exists, found), None)


def _library_path(root):
    folders = (root / LIBRARIES, root / LIBRARIES / "pulseaudio", os.environ.get("LD_LIBRARY_PATH", ""))
    return {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, map(str, folders)))}


def _write(path, text):
    """Write a file atomically: other processes may be reading it."""
    pending = path.with_name(f"{path.name}.{os.getpid()}")
    pending.write_text(text, encoding="utf-8")
    pending.rename(path)


if __name__ == "__main__":
    fetch(Path(sys.argv[1]).resolve())
