"""Containers get the package index of this machine's pip, and none of its other settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from package_index import index_variables, local_paths, pip_variables


def test_options_that_name_an_index_become_variables() -> None:
    listed = "global.extra-index-url='https://a/simple'\nglobal.no-index='true'\ninstall.trusted-host='a'\n"
    expected = {"PIP_EXTRA_INDEX_URL": "https://a/simple", "PIP_NO_INDEX": "true", "PIP_TRUSTED_HOST": "a"}
    assert pip_variables(listed) == expected


def test_the_environment_overrides_files_and_install_overrides_global() -> None:
    listed = ":env:.cert='/c'\nglobal.cert='/a'\nglobal.retries='1'\ninstall.cert='/b'\ninstall.retries='2'\n"
    assert pip_variables(listed) == {"PIP_CERT": "/c", "PIP_RETRIES": "2"}


def test_values_on_several_lines_are_separated_by_spaces() -> None:
    assert pip_variables(r"global.find-links='\n/a\nhttps://b/'") == {"PIP_FIND_LINKS": "/a https://b/"}


def test_options_about_environments_of_this_machine_are_not_passed_on() -> None:
    listed = ":env:.config-file='/x'\nglobal.require-virtualenv='true'\nglobal.target='/t'\ndownload.cert='/a'\n"
    assert pip_variables(listed) == {}


def test_the_configuration_is_read_from_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = tmp_path / "pip.conf"
    configuration.write_text("[global]\nfind-links =\n  /first\n  /second\n", encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(configuration))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://a/simple")
    monkeypatch.setenv("SSL_CERT_FILE", "/b")
    variables = index_variables()
    assert variables["PIP_FIND_LINKS"] == "/first /second"
    assert variables["PIP_INDEX_URL"] == "https://a/simple"
    assert variables["SSL_CERT_FILE"] == "/b"
    assert "PIP_CONFIG_FILE" not in variables


def test_files_that_variables_name_are_found(tmp_path: Path) -> None:
    certificate, links, index = tmp_path / "ca.pem", tmp_path / "links", tmp_path / "index" / "simple"
    certificate.touch()
    links.mkdir()
    index.mkdir(parents=True)
    variables = {
        "PIP_CERT": str(certificate),
        "PIP_EXTRA_INDEX_URL": f"https://a/simple file://{index}",
        "PIP_FIND_LINKS": f"{links} {tmp_path / 'missing'} https://b/",
        "REQUESTS_CA_BUNDLE": str(certificate),
    }
    # The pages of an index link to packages outside it.
    assert local_paths(variables) == [certificate, tmp_path / "index", links]
