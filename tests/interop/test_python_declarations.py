"""What python_api.h declares of Python is what the headers of the Python that runs this declare."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

import pytest
from tests.interop.c_declarations import bodies_of, strip, words_of

OURS = Path(__file__).resolve().parents[2] / "native" / "src" / "interop" / "python" / "python_api.h"
INCLUDE = Path(sysconfig.get_path("include"))
if not (INCLUDE / "Python.h").exists():
    pytest.skip(f"this Python came without its headers: {INCLUDE} has no Python.h", allow_module_level=True)

OUR_SOURCE = OURS.read_text()
# The private ones that other headers include are below cpython/ and internal/.
THEIR_SOURCE = "\n".join(path.read_text() for folder in ("", "cpython") for path in (INCLUDE / folder).glob("*.h"))
THEIR_TEXT = strip(THEIR_SOURCE)
OUR_BODIES, THEIR_BODIES = bodies_of(strip(OUR_SOURCE)), bodies_of(THEIR_TEXT)
SLOTS = {"function": "pfunc"}
METHOD = {"name": "ml_name", "function": "ml_meth", "flags": "ml_flags", "doc": "ml_doc"}
THEIR_NAMES = {"PyType_Slot": SLOTS, "PyMethodDef": METHOD}  # where ours differ

Signature = tuple[str, ...]  # the type of the result, then those of the parameters


def type_of(declaration: str) -> str:
    """A type without the name of what is declared, in one spelling."""
    function = re.fullmatch(r"(.*?)\(\s*\*\s*\w*\s*\)\s*\((.*)\)", declaration)
    if function:
        return f"{type_of(function[1])}(*)({', '.join(types_of(function[2]))})"
    words = re.findall(r"\w+|\*|\.\.\.", declaration)
    if len(words) > 1 and words[-1] not in ("*", "const", "int", "long", "void", "char", "size_t", "Py_ssize_t"):
        words.pop()
    return " ".join(words)


def types_of(parameters: str) -> list[str]:
    """The types of parameters that are separated by commas, of which functions have some within."""
    parts = re.findall(r"(?:[^,()]|\([^()]*\))+", " ".join(parameters.split()))
    return [type_of(part.strip()) for part in parts]


def signature(result: str, parameters: str) -> Signature:
    return (type_of(f"{result} function"), *types_of(parameters))


def our_functions() -> dict[str, Signature]:
    table = OUR_SOURCE[OUR_SOURCE.index("#define DS_PYTHON_FUNCTIONS") :]
    rows = re.findall(r"^    X\(([^,]+), (\w+), \((.*)\)\) *\\?$", table.split("\n\n")[0], re.MULTILINE)
    return {name: signature(result, parameters) for result, name, parameters in rows}


def their_functions() -> dict[str, Signature]:
    found = re.findall(r"PyAPI_FUNC\(([^()]*)\)\s*(\w+)\s*\(((?:[^()]|\([^()]*\))*)\)", THEIR_TEXT)
    return {name: signature(result, parameters) for result, name, parameters in found}


def test_our_functions_are_pythons() -> None:
    ours, theirs = our_functions(), their_functions()
    assert len(ours) == OUR_SOURCE.count("\n    X(") - 4  # besides two objects and two exceptions
    assert ours == {name: theirs.get(name) for name in ours}


def test_our_objects_are_pythons() -> None:
    symbols = re.findall(r"^    X\(\w+, (_\w+)\)", OUR_SOURCE, re.MULTILINE)
    exceptions = [f"PyExc_{name}" for name in re.findall(r"^    X\((\w+)\)", OUR_SOURCE, re.MULTILINE)]
    assert (len(symbols), len(exceptions)) == (2, 2)
    found = re.findall(r"PyAPI_DATA\((?:struct )?([\w *]+)\)\s*(\w+);", THEIR_TEXT)
    types = {name: kind for kind, name in found}
    assert all("*" not in types[name] for name in symbols)
    assert {types[name] for name in exceptions} == {"PyObject *"}


def test_our_types_of_functions_are_pythons() -> None:
    pattern = r"typedef ([\w *]+?)\(\s*\*\s*{name}\s*\)\s*\(([^()]*)\)"
    for ours, theirs in (
        ("PyFunction", "PyCFunction"),
        ("PyFunctionOfMany", "_?PyCFunctionFast"),
        ("PyCapsule_Destructor", "PyCapsule_Destructor"),
    ):
        own = re.search(rf"using {ours} = (.*?)\(\*\)\((.*)\);", OUR_SOURCE)
        python = re.search(pattern.replace("{name}", theirs), THEIR_TEXT)
        assert own is not None, ours
        assert python is not None, theirs
        assert signature(own[1], own[2]) == signature(python[1], python[2])


@pytest.mark.parametrize("name", ["PyMethodDef", "Py_buffer", "PyType_Slot", "PyType_Spec", "PyGetSetDef"])
def test_our_structs_are_pythons(name: str) -> None:
    ours, our_size, _ = words_of(name, OUR_BODIES)
    theirs, their_size, _ = words_of(name, THEIR_BODIES)
    names = THEIR_NAMES.get(name, {})
    assert [word._replace(name=names.get(word.name, word.name)) for word in ours] == theirs
    assert our_size == their_size


def test_no_struct_is_left_out() -> None:
    assert OUR_BODIES.keys() - {"Python"} == {"PyMethodDef", "Py_buffer", "PyType_Slot", "PyType_Spec", "PyGetSetDef"}


def test_our_numbers_are_pythons() -> None:
    ours = dict(re.findall(r"\b(METH_\w+|PyBUF_\w+|Py_tp_\w+|Py_TPFLAGS_\w+) = ([\w <]+)[,;]", OUR_SOURCE))
    source = re.sub(r"/\*.*?\*/", " ", THEIR_SOURCE, flags=re.DOTALL).replace("\\\n", " ")
    theirs = dict(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.+?)[ \t]*$", source, re.MULTILINE))

    def value(expression: str) -> int:
        """The value of numbers and macros with | and <<."""
        total = 0
        for term in expression.strip("()").split("|"):
            base, _, shift = (part.strip("() ") for part in term.partition("<<"))
            total |= (value(theirs[base]) if base in theirs else int(base.rstrip("uUL"), 0)) << int(shift or 0)
        return total

    assert len(ours) == 8
    assert {name: value(text) for name, text in ours.items()} == {name: value(theirs[name]) for name in ours}
