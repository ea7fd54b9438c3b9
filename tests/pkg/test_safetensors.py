"""Files of arrays are as https://github.com/huggingface/safetensors#format says: size of the header, header, arrays."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from doorstep._safetensors import read_arrays, split, write_arrays

ARRAYS: dict[str, NDArray[Any]] = {
    "bytes": np.array([1, 2, 255], np.uint8),
    "flags": np.array([[True], [False]]),
    "half": np.array([0.5, -2], np.float16),
    "none": np.zeros((0, 4), np.float32),
    "number": np.array(2**40, np.int64),
    "columns": np.arange(6, dtype=np.int32).reshape(2, 3).T,
}


def file_of(entries: dict[str, Any], data: bytes) -> bytes:
    """A file as the format says, with a checksum as `_safetensors.py` says, without using either."""
    header = {**entries, "__metadata__": {"by": "hand"}}
    checksum = zlib.crc32(data, zlib.crc32(json.dumps(header, sort_keys=True).encode()))
    header["__metadata__"]["doorstep_checksum"] = f"{checksum:08x}"
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_arrays_survive_their_file(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", ARRAYS, {"by": "a test"})
    header, data = split((tmp_path / "x").read_bytes())
    assert header["__metadata__"]["by"] == "a test"
    found = read_arrays(header, data)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array, strict=True)


def test_a_file_is_laid_out_as_the_format_says(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", ARRAYS, {})
    file = (tmp_path / "x").read_bytes()
    size = int.from_bytes(file[:8], "little")
    header, data = json.loads(file[8 : 8 + size]), file[8 + size :]
    assert all(isinstance(text, str) for text in header.pop("__metadata__").values())
    assert {name: (entry["dtype"], entry["shape"]) for name, entry in header.items()} == {
        "bytes": ("U8", [3]), "flags": ("BOOL", [2, 1]), "half": ("F16", [2]), "none": ("F32", [0, 4]),
        "number": ("I64", []), "columns": ("I32", [3, 2]),
    }  # fmt: skip
    end = 0
    for name, entry in header.items():
        begin, end_before, end = entry["data_offsets"][0], end, entry["data_offsets"][1]
        assert begin == end_before  # no holes
        assert (8 + size + begin) % ARRAYS[name].itemsize == 0
        assert data[begin:end] == ARRAYS[name].tobytes()
    assert end == len(data)


def test_files_of_others_are_read() -> None:
    entry = {"dtype": "I16", "shape": [1, 2], "data_offsets": [0, 4]}
    found = read_arrays(*split(file_of({"x": entry}, b"\x01\x00\xff\xff")))
    np.testing.assert_array_equal(found["x"], np.array([[1, -1]], np.int16), strict=True)


@pytest.mark.parametrize(
    "change",
    [
        {"data_offsets": [2, 6]}, {"data_offsets": [0, 2]}, {"data_offsets": [-4, 0]}, {"data_offsets": [0]},
        {"data_offsets": None}, {"dtype": "F8"}, {"dtype": None}, {"shape": [3]}, {"shape": [-1, -2]}, {"shape": 2},
    ],
)  # fmt: skip
def test_entries_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    entry = {"dtype": "I16", "shape": [1, 2], "data_offsets": [0, 4], **change}
    with pytest.raises((ValueError, LookupError, TypeError)):
        read_arrays(*split(file_of({"x": entry}, b"\0\0\0\0")))
