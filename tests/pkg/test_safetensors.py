"""Files of arrays are as https://github.com/huggingface/safetensors#format says: size of the header, header, arrays."""

import json
import zlib

import numpy as np
import pytest

from doorstep._safetensors import read_arrays, split, write_arrays

ARRAYS = {
    "bytes": np.array([1, 2, 255], np.uint8),
    "flags": np.array([[True], [False]]),
    "half": np.array([0.5, -2], np.float16),
    "none": np.zeros((0, 4), np.float32),
    "number": np.array(2**40, np.int64),
    "columns": np.arange(6, dtype=np.int32).reshape(2, 3).T,
}
TYPES = {"uint8": "U8", "bool": "BOOL", "float16": "F16", "float32": "F32", "int64": "I64", "int32": "I32"}


def file_of(entries, data):
    """A file as the format says, with a checksum as `_safetensors.py` says, without using either."""
    header = {**entries, "__metadata__": {"by": "hand"}}
    checksum = zlib.crc32(data, zlib.crc32(json.dumps(header, sort_keys=True).encode()))
    header["__metadata__"]["doorstep_checksum"] = f"{checksum:08x}"
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_arrays_survive_their_file_which_is_laid_out_as_the_format_says(tmp_path):
    write_arrays(tmp_path / "x", ARRAYS, {"by": "a test"})
    file = (tmp_path / "x").read_bytes()
    found = read_arrays(*split(file))
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    size = int.from_bytes(file[:8], "little")
    header, data = json.loads(file[8 : 8 + size]), file[8 + size :]
    metadata = header.pop("__metadata__")
    assert metadata["by"] == "a test"
    assert all(isinstance(text, str) for text in metadata.values())
    end = 0
    for name, entry in header.items():
        assert (entry["dtype"], entry["shape"]) == (TYPES[str(ARRAYS[name].dtype)], list(ARRAYS[name].shape))
        begin, end_before, end = entry["data_offsets"][0], end, entry["data_offsets"][1]
        assert begin == end_before  # no holes
        assert (8 + size + begin) % ARRAYS[name].itemsize == 0
        assert data[begin:end] == ARRAYS[name].tobytes()
    assert end == len(data)


def test_files_of_others_are_read_and_entries_that_do_not_fit_refused():
    entry = {"dtype": "I16", "shape": [1, 2], "data_offsets": [0, 4]}
    found = read_arrays(*split(file_of({"x": entry}, b"\x01\x00\xff\xff")))
    np.testing.assert_array_equal(found["x"], np.array([[1, -1]], np.int16), strict=True)
    changes = [{"data_offsets": value} for value in ([2, 6], [0, 2], [-4, 0], [0], None)]
    changes += [{"dtype": "F8"}, {"dtype": None}, {"shape": [3]}, {"shape": [-1, -2]}, {"shape": 2}]
    for change in changes:
        with pytest.raises((ValueError, LookupError, TypeError)):
            read_arrays(*split(file_of({"x": {**entry, **change}}, b"\0\0\0\0")))
