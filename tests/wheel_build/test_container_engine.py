"""Podman works with separate settings, missing programs are installed or named, and an image is built once."""

import contextlib
import os
import resource
import shlex
from pathlib import Path

import pytest

import container_engine
import stand_in_image
from build_steps import BuildError
from container_engine import Podman, configure, containers_settings, require_programs

PROGRAMS = ("podman", "runc", "mmdebstrap")


def test_missing_programs_are_installed_by_root_and_named_to_others(add_program, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(container_engine, "SYSTEM_FOLDERS", ())
    calls = tmp_path / "calls"
    for there, user, asked, says in (
        ((), 0, [], "no podman and no runc and no mmdebstrap here, and no apt-get"),
        (("apt-get", "podman"), 1000, [], r"no runc and no mmdebstrap here; as root, run: apt-get install .*runc"),
        (("apt-get", "runc"), 0, ["update", "install --yes --no-install-recommends podman mmdebstrap"], None),
        (("apt-get", *PROGRAMS), 0, [], None),
    ):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        calls.write_text("")
        for path in (tmp_path / "bin").iterdir():
            path.unlink()
        for name in there:
            add_program(name, f'echo "$*" >> {calls}' if name == "apt-get" else "exit 1")
        with pytest.raises(BuildError, match=says) if says else contextlib.nullcontext():
            require_programs(PROGRAMS)
        assert calls.read_text(encoding="utf-8").splitlines() == asked


def test_storage_that_cannot_share_files_copies_them_and_one_that_fails_is_an_error(add_program, tmp_path):
    add_program("podman", "exit 0")
    configure(tmp_path / "cache", {}, [])
    settings = (tmp_path / "cache" / "storage.conf").read_text(encoding="utf-8")
    assert 'driver = "overlay"' in settings
    assert f'graphroot = "{tmp_path}/cache/overlay"' in settings
    add_program("podman", '! grep --quiet overlay "$CONTAINERS_STORAGE_CONF"')
    configure(tmp_path / "other", {}, [])
    assert 'driver = "vfs"' in (tmp_path / "other" / "storage.conf").read_text(encoding="utf-8")
    add_program("podman", "echo 'no such kernel' >&2; exit 125")
    with pytest.raises(BuildError, match="exit status 125 of: podman info\nno such kernel"):
        configure(tmp_path / "third", {}, [])


def test_containers_get_variables_that_are_not_written_down_read_only_folders_and_limits(
    add_program, tmp_path, monkeypatch
):
    add_program("podman", 'echo "$PIP_INDEX_URL"')
    podman = configure(tmp_path / "cache", {"PIP_INDEX_URL": "https://user:password@a/"}, [])
    settings = (tmp_path / "cache" / "containers.conf").read_text(encoding="utf-8")
    assert 'env = ["PIP_INDEX_URL"]' in settings
    assert "password" not in settings
    assert podman.output("images") == "https://user:password@a/\n"
    assert 'volumes = ["/a:/a:ro", "/b/c:/b/c:ro"]' in containers_settings([], [Path("/a"), Path("/b/c")])

    highest = tmp_path / "pid_max"
    highest.write_text("32768\n", encoding="ascii")
    monkeypatch.setattr(container_engine, "HIGHEST_PROCESS_ID", highest)
    limits = {resource.RLIMIT_NOFILE: (10, 2000), resource.RLIMIT_NPROC: (10, 3000)}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits[kind])
    assert 'default_ulimits = ["nofile=2000:2000", "nproc=3000:3000"]' in containers_settings([], [])
    for most in (99999, resource.RLIM_INFINITY):
        limits[resource.RLIMIT_NPROC] = (10, most)
        assert '"nproc=32768:32768"]' in containers_settings([], [])


# ---- The image

TARGETS = """\
Someone\tmain\tbookworm\thttps://someone/
Debian\tmain\tbookworm-updates\thttps://updates/debian/
Debian\tcontrib\tbookworm\thttps://contrib/debian/
Debian\tmain\tbookworm-security\thttps://security/debian/
Debian\tmain\tbookworm\thttps://mirror/debian/
"""


def test_the_image_is_built_once_for_each_recipe_from_the_archive_of_this_machine(add_program, tmp_path, monkeypatch):
    add_program("apt-get", f"printf {shlex.quote(TARGETS)}")
    add_program("apt-config", """echo 'Acquire::http::Proxy "http://proxy/";'; echo 'APT::Color "yes";'""")
    add_program("mmdebstrap", f'printf "%s\\n" "$@" >> {tmp_path}/arguments')
    # podman import --quiet FILE IMAGE
    add_program("podman", f'cd {tmp_path}; case "$1" in images) cat images;; import) echo "$4" >> images;; esac')
    (tmp_path / "images").touch()
    podman = Podman(os.environ)
    image = stand_in_image.make(podman)
    arguments = (tmp_path / "arguments").read_text(encoding="utf-8")
    assert (image.partition(":")[0], stand_in_image.make(podman)) == (stand_in_image.REPOSITORY, image)
    assert (tmp_path / "arguments").read_text(encoding="utf-8") == arguments
    sources = [argument for argument in arguments.splitlines() if argument.startswith("deb ")]
    assert sources == [f"deb https://mirror/debian/ {suite} main" for suite in stand_in_image.SUITES]
    assert '--aptopt=Acquire::http::Proxy "http://proxy/";' in arguments.splitlines()
    assert "Color" not in arguments
    monkeypatch.setattr(stand_in_image, "PYTHONS", ("3.13",))
    assert stand_in_image.make(podman) != image


def test_lists_of_the_archive_are_fetched_by_root_or_asked_for(add_program, tmp_path, monkeypatch):
    (tmp_path / "fetched").write_text(TARGETS, encoding="utf-8")
    (tmp_path / "lists").touch()
    add_program("apt-get", f'cd {tmp_path}; if [ "$1" = update ]; then mv fetched lists; else cat lists; fi')
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert stand_in_image.debian_archive() == "https://mirror/debian/"
    add_program("apt-get", r"printf 'Ubuntu\tmain\tnoble\thttps://mirror/ubuntu/\n'")
    for user in (0, 1000):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        with pytest.raises(BuildError, match=r"no lists of a Debian archive; .* as root: apt-get update"):
            stand_in_image.debian_archive()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match="a Debian archive to make a container image from is found with apt: "):
        stand_in_image.debian_archive()


def test_every_interpreter_is_where_cibuildwheel_looks_for_it():
    assert stand_in_image.identifiers() == {f"cp3{minor}-manylinux_x86_64" for minor in (11, 13, 14)}
    hooks = " ".join(stand_in_image.bootstrap_options([]))
    for minor in (11, 13, 14):
        assert f'--customize-hook=chroot "$1" python3.{minor} -m venv' in hooks
        assert f"/opt/python/cp3{minor}-cp3{minor}/bin/python -m pip install" in hooks
