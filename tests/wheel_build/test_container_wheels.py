"""cibuildwheel uses the image's interpreters and this machine's package index; its wheel is the local one."""

from pathlib import Path

import pytest
from tests.wheel_build.conftest import PROJECT

import container_wheels
import repair_wheel
from build_steps import BuildError
from container_engine import configure, containers_settings
from kernel_image_file import unpack
from package_index import index_variables, pip_variables
from wheel_file import LIBRARY, Wheel


def test_containers_get_variables_that_are_not_written_down_and_read_only_folders(add_program, tmp_path):
    add_program("podman", 'echo "$PIP_INDEX_URL"')
    podman = configure(tmp_path / "cache", {"PIP_INDEX_URL": "https://user:password@a/"}, [])
    settings = (tmp_path / "cache" / "containers.conf").read_text(encoding="utf-8")
    assert 'env = ["PIP_INDEX_URL"]' in settings
    assert "password" not in settings
    assert podman.output("images") == "https://user:password@a/\n"
    assert 'volumes = ["/a:/a:ro", "/b/c:/b/c:ro"]' in containers_settings([], [Path("/a"), Path("/b/c")])


# ---- cibuildwheel


def test_interpreters_that_the_image_lacks_are_skipped_and_named(capsys):
    assert container_wheels.available(["cp310-x", "cp311-x", "cp314t-x"], {"cp314-x", "cp311-x"}) == ["cp311-x"]
    assert "not in the image, neither built nor tested: cp310-x, cp314t-x\n" in capsys.readouterr().err
    assert container_wheels.available(["cp311-x"], {"cp314-x", "cp311-x"}) == ["cp311-x"]
    assert capsys.readouterr().err == ""
    with pytest.raises(BuildError, match=r"chooses cp310-x, .* has cp311-x; .* CIBW_MANYLINUX_X86_64_IMAGE="):
        container_wheels.available(["cp310-x"], {"cp311-x"})


def test_the_callers_settings_are_kept():
    environment = container_wheels.wheel_environment({"CIBW_CONTAINER_ENGINE": "docker", "OTHER": "1"})
    assert (environment["CIBW_CONTAINER_ENGINE"], environment["OTHER"]) == ("docker", "1")
    assert environment["SOURCE_DATE_EPOCH"] == repair_wheel.SOURCE_DATE_EPOCH
    assert container_wheels.wheel_environment({})["CIBW_CONTAINER_ENGINE"].startswith("podman;")


# ---- The index of this machine's pip


def test_options_that_name_an_index_become_variables():
    for listed, variables in (
        ("global.extra-index-url='https://a/simple'\nglobal.no-index='true'\ninstall.trusted-host='a'\n",
         {"PIP_EXTRA_INDEX_URL": "https://a/simple", "PIP_NO_INDEX": "true", "PIP_TRUSTED_HOST": "a"}),
        # The environment overrides files, and install overrides global.
        (":env:.cert='/c'\nglobal.cert='/a'\nglobal.retries='1'\ninstall.cert='/b'\ninstall.retries='2'\n",
         {"PIP_CERT": "/c", "PIP_RETRIES": "2"}),
        (r"global.find-links='\n/a\nhttps://b/'", {"PIP_FIND_LINKS": "/a https://b/"}),
        # What is this machine's.
        (":env:.config-file='/x'\nglobal.require-virtualenv='true'\nglobal.target='/t'\ndownload.cert='/a'\n", {}),
    ):  # fmt: skip
        assert pip_variables(listed) == variables


def test_the_configuration_is_read_from_pip(tmp_path, monkeypatch):
    configuration = tmp_path / "pip.conf"
    configuration.write_text("[global]\nfind-links =\n  /first\n  /second\n", encoding="utf-8")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    own = {"PIP_CONFIG_FILE": str(configuration), "PIP_INDEX_URL": "https://a/simple", "SSL_CERT_FILE": "/b"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    variables = index_variables()
    assert variables["PIP_FIND_LINKS"] == "/first /second"
    assert {name: variables.get(name) for name in own} == {**own, "PIP_CONFIG_FILE": None}


# ---- Its wheel


def test_the_wheel_of_cibuildwheel_is_the_local_one_but_for_kernels_of_unselected_architectures(finished):
    wheels = list((PROJECT / "wheelhouse").glob("doorstep-*.whl"))
    if not wheels:
        pytest.skip("no wheel of cibuildwheel: make wheels")
    (path,) = wheels
    container = Wheel(Path(path), PROJECT)
    assert (container.path.name, list(container.files)) == (finished.path.name, list(finished.files))
    images = [unpack(wheel.files[LIBRARY]) for wheel in (container, finished)]
    shared = images[0].keys() & images[1].keys()
    assert shared == images[1].keys() != set()  # the container's has those of all architectures
    assert [name for name in shared if images[0][name] != images[1][name]] == []
    names = {name.rpartition("/")[2] for name in finished.files if container.files[name] != finished.files[name]}
    assert names == (set() if images[0].keys() == images[1].keys() else {"libdoorstep.so", "RECORD"})
