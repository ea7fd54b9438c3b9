"""Documents that people write: JSON, and YAML with PyYAML.

What two readers may understand differently is refused, as a name that occurs twice in one dictionary. YAML is the part
of it that means the same everywhere: numbers as in JSON, `true`, `false` and `null`; all else is text. So neither `010`
is a number, nor `1:30`, nor is `yes` a truth value, as in YAML 1.1. Without aliases a document is as large as its text.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from doorstep._arguments import check_integer, refuse, shown
from doorstep._files import checked_path
from doorstep._optional import import_optional
from doorstep.errors import ArgumentError

Made = TypeVar("Made")

_INTEGER = r"[-+]?(?:0|[1-9][0-9]*)$"
_NUMBER = r"(?:[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan)$"


def to_json(values: dict[str, Any], indent: int | None = None) -> str:
    import json  # here, as it would cost a tenth of the time that `import doorstep` takes

    return json.dumps(values, indent=indent)


def from_json(text: str | bytes) -> Any:
    """What a JSON text says.

    Raises:
        ArgumentError: it is not JSON, or an object has a name twice.
    """
    import json

    try:
        return json.loads(text, object_pairs_hook=_dictionary)
    except RecursionError as error:
        raise ArgumentError("text is not JSON: it is nested too deeply", argument="text") from error
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"text is not JSON: {_why(text, error)}", argument="text") from error


def _dictionary(items: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(items)
    if len(values) < len(items):
        raise ValueError(f"{_repeated(name for name, _ in items)} occurs twice in one object")
    return values


def _repeated(names: Iterable[Any]) -> str:
    """The name that is there most often."""
    return shown(Counter(names).most_common(1)[0][0])


def to_yaml(values: dict[str, Any]) -> str:
    yaml = _load_yaml()
    return str(yaml.dump(values, Dumper=_dialect(yaml)[1], sort_keys=False))


def from_yaml(text: str | bytes) -> Any:
    """What a YAML text says.

    Raises:
        ArgumentError: it is not YAML, or has aliases, tags, or a name twice in one mapping.
        LibraryError: PyYAML is not installed.
    """
    yaml = _load_yaml()
    try:
        return yaml.load(text, _dialect(yaml)[0])
    except RecursionError as error:
        raise ArgumentError("text is not YAML: it is nested too deeply", argument="text") from error
    except (yaml.YAMLError, ValueError, AttributeError) as error:
        raise ArgumentError(f"text is not YAML: {_why(text, error)}", argument="text") from error


def _why(text: str | bytes, error: Exception) -> str:
    """What is wrong with a text that cannot be read."""
    try:
        if isinstance(text, bytes):
            text.decode()
    except UnicodeDecodeError:
        return f"it is no text in UTF-8, but begins with {shown(text[:8])}"
    # Of integers with too many digits Python says how a program may allow them.
    return str(error).partition("; use sys.")[0]


def _load_yaml() -> Any:
    return import_optional("yaml", "YAML, unlike JSON, needs PyYAML", "yaml")


@functools.cache
def _dialect(yaml: Any) -> tuple[Any, Any]:
    """The loader and the dumper of documents as above."""
    import re

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()
            is_alias = isinstance(event, yaml.AliasEvent)
            if is_alias or event.tag is not None:
                problem = "an alias; write the value out" if is_alias else "a tag; write the value without it"
                raise yaml.MarkedYAMLError(problem=f"there is {problem}", problem_mark=event.start_mark)
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            values = super().construct_mapping(node, deep)
            if len(values) < len(node.value):
                names = (self.construct_object(name, deep=True) for name, _ in node.value)
                problem = f"{_repeated(names)} occurs twice in one mapping"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
            return values

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        """Also puts into quotation marks what YAML 1.1 takes for something other than text."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    for kind, pattern, first in (
        ("int", _INTEGER, "-+0123456789"),
        ("float", _NUMBER, "-+0123456789."),
        ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
        ("null", r"(?:~|null|Null|NULL|)$", ("~", "n", "N", "")),
    ):
        for cls in (Loader, Dumper):
            cls.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), list(first))
    return Loader, Dumper


# ---- What a document is ----


def body_of(name: str, values: object, kind: str, version: int) -> dict[str, Any]:
    """The fields of a document without "doorstep", its kind, and without "version", that of its format.

    Args:
        name: of the values in messages.
        values: the document.
        kind: that it must be of.
        version: the latest that can be read.

    Raises:
        ArgumentError: it is no dictionary, of another kind, or of a later version.
    """
    if not isinstance(values, Mapping):
        refuse(name, f"a dictionary of a {kind}", values)
    fields = dict(values)
    found = fields.pop("doorstep", None)
    if not isinstance(found, str) or found != kind:
        what = f"of a {shown(found)}" if "doorstep" in values else "without its kind"
        message = f'the document is {what}; it must have "doorstep": "{kind}"'
        raise ArgumentError(message, argument="doorstep")
    given = check_integer("version", fields.pop("version", None), 1, 2**31)
    if given > version:
        message = f"version is {given}; this release of doorstep reads version {version}"
        raise ArgumentError(message, argument="version", hint="install a later doorstep")
    return fields


# ---- Files ----


def load(path: str | os.PathLike[str], make: Callable[[Any], Made]) -> Made:
    """make() of what a file says. Its name ends in .json, .yaml or .yml; errors about its contents begin with its path.

    Raises:
        ArgumentError: as `from_json()`, `from_yaml()` and `make()`, or the name ends otherwise.
        LibraryError: PyYAML is not installed.
        OSError: the file cannot be read.
    """
    readers = {".json": from_json, ".yaml": from_yaml, ".yml": from_yaml}
    file = checked_path(path)
    reader = readers.get(os.path.splitext(file)[1].lower())
    if reader is None:
        refuse("path", f"a file whose name ends in {', '.join(readers)}", os.path.basename(file))
    return read(file, lambda text: make(reader(text)))


def read(path: str | os.PathLike[str], make: Callable[[bytes], Made]) -> Made:
    """make() of the bytes of a file. Errors about the contents begin with the path.

    Raises:
        ArgumentError: as `make()`.
        OSError: the file cannot be read.
    """
    with open(checked_path(path), "rb") as file:
        text = file.read()
    try:
        return make(text)
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error.args[0]}", argument=error.argument, hint=error.hint) from None
