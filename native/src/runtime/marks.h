// Bytes that mark items: nonzero for those that are meant.
#pragma once

#include <stdint.h>
#include <string.h>

#include <bit>

namespace doorstep {

// The first marked item of [from, count), or count. Eight bytes are looked at together: few items are marked.
inline int64_t next_marked(const uint8_t* marks, int64_t from, int64_t count) {
    for (; from + 8 <= count; from += 8) {
        uint64_t eight;
        memcpy(&eight, marks + from, sizeof eight);
        if (eight) return from + std::countr_zero(eight) / 8;
    }
    while (from < count && !marks[from]) ++from;
    return from;
}

// The first item of [from, count) that is not marked, or count: the end of a run.
inline int64_t next_unmarked(const uint8_t* marks, int64_t from, int64_t count) {
    while (from < count && marks[from]) ++from;
    return from;
}

// Calls function(item) for the marked items of [0, count), in order. It may clear their marks.
template <class Function>
void for_each_marked(const uint8_t* marks, int64_t count, const Function& function) {
    for (int64_t item = next_marked(marks, 0, count); item < count; item = next_marked(marks, item + 1, count)) {
        function(item);
    }
}

}  // namespace doorstep
