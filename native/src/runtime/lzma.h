// Decodes LZMA, which Python's standard library encodes: the raw stream, without a header, of the coder's settings
// lc = 0, lp = 4, pb = 4, which suit machine code whose instructions have 16 bytes.
#pragma once

#include <stddef.h>

namespace doorstep {

// The first `output_bytes` of what the input encodes. False if the input is damaged or encodes less; the output is
// undefined then.
bool decode_lzma(const unsigned char* input, size_t input_bytes, unsigned char* output, size_t output_bytes);

}  // namespace doorstep
