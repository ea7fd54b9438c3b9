"""Files with a checksum, changed by hand or by accident."""

import json
import random
import re

import doorstep
from doorstep._safetensors import CHECKSUM, METADATA, seal, split


def change_header(path, change, *, sealed=True):
    """Changes the header, and the checksum accordingly, or removes it."""
    header, arrays = split(path.read_bytes())
    del header[METADATA][CHECKSUM]
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes((seal(header, arrays) if sealed else len(text).to_bytes(8, "little") + text) + bytes(arrays))


def change_metadata(path, key, **changes):
    """Changes what an entry of the metadata says."""

    def change(header):
        header[METADATA][key] = json.dumps({**json.loads(header[METADATA][key]), **changes})

    change_header(path, change)


def assert_flipped_bits_are_refused(path, read, message, most=1500):
    """Bits of the header, and as many of the arrays as there are bytes in the header, or some of all these."""
    data = bytearray(path.read_bytes())
    end, chosen = 8 + int.from_bytes(data[:8], "little"), random.Random(0)
    bits = [*range(8 * end), *(chosen.randrange(8 * end, 8 * len(data)) for _ in range(end))]
    accepted = []
    for bit in chosen.sample(bits, min(most, len(bits))):
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        data[bit // 8] ^= 1 << bit % 8
        try:
            read(path)
        except doorstep.StateError as error:
            if re.search(message, str(error)):
                continue
        accepted.append(bit)
    assert not accepted
