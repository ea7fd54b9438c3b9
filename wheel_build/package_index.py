"""The package index of this machine, as its pip is configured, for programs that run in a container."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

# Options for where packages come from, and how they are fetched. Other pip options are for this machine's own
# environments and must not affect a container.
OPTIONS = {
    *("index-url", "extra-index-url", "find-links", "no-index"),
    *("cert", "client-cert", "trusted-host", "proxy", "timeout", "default-timeout", "retries"),
}
# Later entries take precedence.
SECTIONS = ("global", "install", ":env:")
# Certificate files, for pip and for other programs that use TLS.
CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def index_variables() -> dict[str, str]:
    """Environment variables that make another pip use the same packages as the pip of this Python."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {**pip_variables(listed), **{name: os.environ[name] for name in CERTIFICATES if os.environ.get(name)}}


def pip_variables(listed: str) -> dict[str, str]:
    """The OPTIONS in the output of `pip config list` as environment variables of pip."""
    values: dict[tuple[str, str], str] = {}
    for line in listed.splitlines():
        match = re.fullmatch(r"(\S+?)\.([\w-]+)=(.+)", line)
        if match and match[2] in OPTIONS:
            # In a file, values of a list may stand on lines of their own.
            values[match[1], match[2]] = " ".join(ast.literal_eval(match[3]).split())
    return {
        f"PIP_{option.upper().replace('-', '_')}": value
        for section in SECTIONS
        for (place, option), value in values.items()
        if place == section
    }


def local_paths(variables: Mapping[str, str]) -> list[Path]:
    """Existing files and folders that the variables name, which must be mounted into a container."""
    paths = [path for value in variables.values() for path in _paths_in(value.split()) if path.exists()]
    return sorted(set(paths))


def _paths_in(words: Iterable[str]) -> Iterable[Path]:
    for word in words:
        if word.startswith("file://"):
            # The pages of an index link to packages outside it, such as ../../packages/name.whl.
            yield Path(word.removeprefix("file://")).parent
        elif word.startswith("/"):
            yield Path(word)
