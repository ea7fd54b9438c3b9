"""Labels of series as Prometheus writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from doorstep._arguments import check_text

_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
_CHARACTERS = {escape: character for character, escape in _ESCAPES.items()}


def labels_text(labels: Mapping[str, object]) -> str:
    """In the order of their names.

    Raises:
        ArgumentError: UTF-8 cannot hold one.
    """
    checked = {check_text("labels", name): check_text(name, str(value)) for name, value in labels.items()}
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(checked.items()))


def _escaped(value: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in value)


def parse_labels(text: str) -> dict[str, str]:
    """The labels of a text that the library gave."""
    return {
        name: re.sub(r"\\.", lambda escape: _CHARACTERS[escape[0]], value) for name, value in _LABEL.findall(text)
    }
