"""Checks of arguments, made before ctypes would cut a number to the width of a C type.

Messages have the form of the native library's: the argument's value, and what it must be.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Set, Sized
from typing import Any, NoReturn, SupportsIndex, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doorstep._native import DeviceKind
from doorstep.errors import ArgumentError

Function = TypeVar("Function", bound="Callable[..., Any]")

# Worlds of a simulator: a boolean mask [N], distinct slots, or None for all.
WorldSelection: TypeAlias = "ArrayLike | None"

_LARGEST_FLOAT32, _LARGEST_FLOAT64 = float(np.finfo(np.float32).max), float(np.finfo(np.float64).max)
_MAX_SHOWN = 60  # characters of a value shown in a message
_MAX_SHOWN_BITS = 2000  # of integers; those of more than 640 digits Python may refuse to write
_BRACKETS = {list: "[]", tuple: "()", dict: "{}"}


def shown(value: object) -> str:
    """repr() as messages show it: cut, and at the cost of what is shown, whatever the value."""
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > _MAX_SHOWN:
            return text[: _MAX_SHOWN - 3] + "..."
    return text


def showing(*attributes: str) -> Callable[[Any], str]:
    """A `__repr__` with the values of these attributes, or attributes of attributes: "config.seed"."""

    def show(self: Any) -> str:
        values = [f"{name.rpartition('.')[2].lstrip('_')}={operator.attrgetter(name)(self)!r}" for name in attributes]
        return f"{type(self).__name__}({', '.join(values)})"

    return show


def _pieces(value: Any) -> Iterator[str]:
    """repr(), piece by piece."""
    kind: Any = type(value)
    if kind in _BRACKETS:
        yield _BRACKETS[kind][0]
        for index, item in enumerate(value):
            yield ", " if index else ""
            yield from _pieces(item)
            if kind is dict:
                yield ": "
                yield from _pieces(value[item])
        yield "," if kind is tuple and len(value) == 1 else ""
        yield _BRACKETS[kind][1]
    elif kind in (str, bytes, bytearray):
        yield repr(value[: _MAX_SHOWN + 1])
    elif kind is int and value.bit_length() > _MAX_SHOWN_BITS:
        yield f"an integer of {value.bit_length()} bits"
    else:
        try:
            yield repr(value)
        except Exception:  # the code of a user may raise anything
            yield f"a {kind.__name__}"


def refuse(name: str, requirement: str, value: object, hint: str = "") -> NoReturn:
    raise ArgumentError(f"{name} is {shown(value)}; it must be {requirement}", argument=name, hint=hint)


def count(number: int, thing: str) -> str:
    """The number of things as text: "1 step", "1,000 steps"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


# Other libraries' words for the same, in names.
_SAME_WORDS = {"n": "num", **dict.fromkeys(("env", "envs", "environment", "environments", "world"), "worlds")}


def meant(name: object, names: Iterable[str]) -> list[str]:
    """The names that a wrong one may stand for: by its initials, as lr for learning_rate, by the beginnings of their
    words, as obs for observations, in the words of other libraries, as n_envs for num_worlds, or nearly."""
    import difflib  # here: `import doorstep` does not pay for it

    if not isinstance(name, str):
        return []
    by_words = {_in_same_words(known): known for known in names}
    wrong = _in_same_words(name[:_MAX_SHOWN])
    found = [known for known in by_words if len(name) > 1 and _abbreviates(wrong, known)]
    found = [wrong] if wrong in by_words else found or difflib.get_close_matches(wrong, by_words, n=1)
    return [by_words[known] for known in found]


def _in_same_words(name: str) -> str:
    return "_".join(_SAME_WORDS.get(word, word) for word in name.split("_"))


def _abbreviates(short: str, name: str) -> bool:
    words, parts = name.split("_"), short.split("_")
    are_beginnings = len(parts) <= len(words) and all(map(str.startswith, words, parts))
    return short == "".join(word[:1] for word in words) or are_beginnings


def nearest(name: object, names: Iterable[str], otherwise: str = "") -> str:
    """A hint with the name that was meant by a wrong one; without one, `otherwise` and all names, or ""."""
    known = list(names)
    if found := meant(name, known):
        return f"did you mean {min(found, key=len)!r}?"
    return otherwise and f"{otherwise} {', '.join(known) or 'none'}"


def refuse_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuses keywords that a function does not have, as Python does, with those that were meant."""
    for name in given:
        if name not in known:
            hint = nearest(name, known, "it takes")
            raise TypeError(f"{function}() got an unexpected keyword argument {shown(name)}; {hint}") from None


def named(function: Function) -> Function:
    """A decorator of functions without **keywords, and of classes: errors name the keyword that was meant."""
    if isinstance(function, type):
        function.__init__ = named(function.__init__)  # type: ignore[misc]
        return function
    code: Any = getattr(function, "__code__")  # noqa: B009
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = [name for name in names if name not in ("self", "cls")]

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError:
            refuse_keywords(function.__qualname__, keywords, known)
            raise

    return call  # type: ignore[return-value]


def is_integer(value: object) -> TypeGuard[SupportsIndex]:
    """Whether it is an integer. Booleans are not, also those of older numpy, which have `__index__` too."""
    return hasattr(value, "__index__") and not isinstance(value, (bool, np.bool_))


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a number of Python or numpy. Booleans are not."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def to_single(value: float) -> float:
    """The nearest number of single precision; infinite beyond its range."""
    with np.errstate(over="ignore"):
        return float(np.float32(max(min(value, _LARGEST_FLOAT64), -_LARGEST_FLOAT64)))  # NaN stays


def check_integer(name: str, value: object, low: int, high: int) -> int:
    """A Python or numpy integer; booleans are refused."""
    if type(value) is int and low <= value <= high:
        return value
    requirement = f"an integer, {low} to {high}"
    if not is_integer(value):
        refuse(name, requirement, value)
    try:
        number = operator.index(value)
    except TypeError:
        refuse(name, requirement, value)
    if not low <= number <= high:
        refuse(name, requirement, value)
    return number


def check_between(name: str, value: object, high: float, unit: str) -> float:
    """A number more than 0 and less than `high`, also when rounded to single precision, which the library uses."""
    requirement = f"a number of {unit}, more than 0 and less than {high:g}"
    if not is_number(value) or not (0 < value < high and 0 < to_single(value) < high):
        refuse(name, requirement, value)
    return float(value)


def check_vector(name: str, value: object, length: int, requirement: str) -> tuple[float, ...]:
    """A sequence of numbers, finite also in single precision. Strings, sets and booleans are refused."""
    if not isinstance(value, Sized) or isinstance(value, (str, bytes, bytearray, memoryview, Set, Mapping)):
        refuse(name, requirement, value)
    try:
        numbers = tuple(_as_float(element) for element in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        refuse(name, requirement, value)
    if len(numbers) != length or not all(abs(number) <= _LARGEST_FLOAT32 for number in numbers):
        refuse(name, requirement, value)
    return numbers


def _as_float(value: Any) -> float:
    if isinstance(value, (bool, np.bool_, str, bytes)) or np.ndim(value) != 0:
        raise TypeError
    return float(value)


def check_rotation(name: str, value: object, tolerance: float) -> tuple[float, ...]:
    """A quaternion, divided by its length. tolerance: how far the square of its length may be from 1."""
    requirement = "a unit quaternion (w, x, y, z)"
    numbers = check_vector(name, value, 4, requirement)
    squared = math.fsum(number * number for number in numbers)
    if abs(squared - 1) > tolerance:
        hint = "divide it by its length" if squared > 0 else "(1, 0, 0, 0) is no rotation"
        refuse(name, requirement, value, hint)
    return tuple(number / math.sqrt(squared) for number in numbers)


def check_flag(name: str, value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        refuse(name, "True or False", value)
    return bool(value)


def check_text(name: str, value: object) -> str:
    """Text that can be printed and stored."""
    if not isinstance(value, str):
        refuse(name, "a text", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        refuse(name, "a text that UTF-8 can hold", value, "remove the lone surrogates")
    return value


def listed(value: object) -> list[Any]:
    """The elements of what can be iterated over; of other objects none."""
    try:
        elements = iter(value)  # type: ignore[call-overload]
    except TypeError:
        return []
    return list(elements)


def check_functions(**given: object) -> None:
    """None or functions, by their names."""
    for name, value in given.items():
        if value is not None and not callable(value):
            refuse(name, "None or a function", value)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        refuse(name, "one of " + ", ".join(map(repr, choices)), value)
    return value


_LONGEST_TIMEOUT = 1e9  # seconds, three decades, which int64 holds as nanoseconds


def check_timeout(value: object) -> float | None:
    """Seconds, or None for no limit."""
    if value is None:
        return None
    if not is_number(value) or not 0 <= value <= _LONGEST_TIMEOUT:
        refuse("timeout", "None or a number of seconds, 0 to 1e9", value)
    return float(value)


def check_device(value: object) -> tuple[DeviceKind, int | None]:
    """'cpu', 'cuda', 'cuda:K' or 'auto', or PyTorch's object for one, as kind and, for 'cuda:K', index."""
    if isinstance(value, str) or (type(value).__module__, type(value).__name__) == ("torch", "device"):
        kind, colon, index = str(value).partition(":")
        if kind in ("cpu", "auto", "cuda") and not colon:
            return DeviceKind[kind.upper()], None
        if kind == "cuda" and index.isascii() and index.isdigit() and len(index) < 10:
            return DeviceKind.CUDA, int(index)
    refuse("device", "'cpu', 'cuda', 'cuda:K' (K = 0, 1, ...) or 'auto'", value)


def check_worlds(worlds: object, num_worlds: int) -> NDArray[np.uint8] | NDArray[np.int64]:
    """The mask as uint8 [N], or the slots as int64. The library checks that slots are distinct."""
    requirement = f"None, a boolean mask of shape ({num_worlds},) or distinct slots, 0 to {num_worlds - 1}"
    try:
        array = np.asarray(worlds)
    except Exception:  # whatever an array-like raises when it cannot become an array
        refuse("worlds", requirement, worlds)
    if array.dtype == np.bool_:
        if array.shape != (num_worlds,):
            refuse("worlds", requirement, worlds)
        return np.ascontiguousarray(array).view(np.uint8)
    if array.shape == (0,):  # an empty list is an array of floats
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        refuse("worlds", requirement, worlds)
    outside = array[(array < 0) | (array >= num_worlds)]
    if outside.size:
        refuse("worlds", f"slots of this simulator, 0 to {num_worlds - 1}", outside[0].item())
    return np.ascontiguousarray(array, dtype=np.int64)


def check_slots(worlds: object, num_worlds: int) -> NDArray[np.int64]:
    """The slots of a mask, or the slots as they are."""
    selection = check_worlds(worlds, num_worlds)
    if selection.dtype == np.uint8:
        return np.flatnonzero(selection).astype(np.int64, copy=False)
    return selection.astype(np.int64, copy=False)


def check_weights(name: str, value: object, count: int) -> NDArray[np.float32]:
    """float32 [count]: relative probabilities."""
    requirement = f"{count} finite numbers that are not negative and not all zero"
    try:
        with np.errstate(over="ignore"):
            weights = np.asarray(value, np.float32)
    except (TypeError, ValueError, OverflowError):
        refuse(name, requirement, value)
    if weights.shape != (count,) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        refuse(name, requirement, value)
    return np.ascontiguousarray(weights)


def check_bytes(name: str, value: object) -> NDArray[np.uint8]:
    """The bytes of any contiguous bytes-like object, without a copy."""
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        refuse(name, "a bytes-like object", value)
    if not view.c_contiguous:
        refuse(name, "contiguous", value)
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)
