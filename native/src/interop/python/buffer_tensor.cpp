#include "interop/python/buffer_tensor.h"

#include "interop/dlpack.h"

namespace doorstep {
namespace {

// An element type in the notation of Python's struct module, without size and byte order: one letter.
bool parse_letter(char letter, uint8_t* code) {
    switch (letter) {
        case 'b': case 'h': case 'i': case 'l': case 'q': case 'n': *code = kDLInt; return true;
        case 'B': case 'H': case 'I': case 'L': case 'Q': case 'N': *code = kDLUInt; return true;
        case 'e': case 'f': case 'd': *code = kDLFloat; return true;
        case '?': *code = kDLBool; return true;
        default: return false;
    }
}

bool parse_format(const char* format, uint8_t* code) {
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    const bool complex = *format == 'Z';
    if (complex) ++format;
    if (!parse_letter(format[0], code) || format[1]) return false;
    if (!complex) return true;
    const bool known = *code == kDLFloat && *format != 'e';
    *code = kDLComplex;
    return known;
}

bool fill(const Py_buffer& buffer, TensorView* view) {
    if (buffer.ndim > kMaxRank || !buffer.format || !parse_format(buffer.format, &view->dtype_code)) return false;
    view->rank = buffer.ndim;
    view->device_type = kDLCPU;
    view->device_index = 0;
    view->dtype_bits = static_cast<uint8_t>(buffer.itemsize * 8);
    view->dtype_lanes = 1;
    view->requires_grad = 0;
    view->read_only = buffer.readonly != 0;
    view->library = DS_PYTHON_LIBRARY_NUMPY;
    int64_t count = 1;
    bool contiguous = true;
    for (int axis = buffer.ndim - 1; axis >= 0; --axis) {
        const int64_t extent = buffer.shape[axis];
        // A field of a record may have a stride of any number of bytes.
        if (buffer.strides[axis] % buffer.itemsize && extent > 1) return false;
        const int64_t stride = buffer.strides[axis] / buffer.itemsize;
        contiguous = contiguous && (extent == 1 || stride == count);
        view->shape[axis] = extent;
        view->strides[axis] = stride;
        count *= extent;
    }
    view->count = count;
    view->data = count ? buffer.buf : nullptr;
    view->contiguous = contiguous || count == 0;
    return true;
}

}  // namespace

bool read_buffer(PyObject* object, TensorView* view) {
    Py_buffer buffer;
    if (python().PyObject_GetBuffer(object, &buffer, PyBUF_RECORDS_RO)) {
        python().PyErr_Clear();
        return false;
    }
    const bool plain = fill(buffer, view);
    python().PyBuffer_Release(&buffer);
    return plain;
}

}  // namespace doorstep
