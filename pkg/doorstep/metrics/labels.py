"""Labels of series as Prometheus writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
_CHARACTERS = {escape: character for character, escape in _ESCAPES.items()}


def labels_text(labels: Mapping[str, object]) -> str:
    """In the order of their names."""
    return ",".join(f'{name}="{_escaped(str(value))}"' for name, value in sorted(labels.items()))


def _escaped(value: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in value)


def parse_labels(text: str) -> dict[str, str]:
    """The labels of a text that the library gave."""
    return {
        name: re.sub(r"\\.", lambda escape: _CHARACTERS[escape[0]], value) for name, value in _LABEL.findall(text)
    }
