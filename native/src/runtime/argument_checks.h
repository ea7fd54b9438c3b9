// Errors of entry points about their arguments. Both libraries have them, each based on its own fail().
#pragma once

#include <string.h>

#include "doorstep/library.h"
#include "runtime/status.h"

namespace doorstep {

inline ds_status fail_null(const char* argument) {
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass the address of an object", "%s is a null pointer",
                argument);
}

// ---- Structs, which say their size

inline ds_status fail_struct_size(const char* argument, uint32_t given, uint32_t expected) {
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "set struct_size to sizeof the struct before the call",
                "%s.struct_size is %u; it must be %u", argument, given, expected);
}

// Checks that a struct exists and has this library's size.
template <class Struct>
ds_status check_struct(const Struct* given, const char* argument) {
    if (!given) return fail_null(argument);
    if (given->struct_size != sizeof(Struct)) return fail_struct_size(argument, given->struct_size, sizeof(Struct));
    return DS_STATUS_OK;
}

// Structs grow at their end. One of a program that was compiled against an earlier header lacks the latest fields.
constexpr uint32_t kSmallestStruct = 16;  // of those that are as large

template <class Struct>
ds_status check_grown_struct(const Struct* given, const char* argument) {
    if (!given) return fail_null(argument);
    const uint32_t size = given->struct_size;
    const uint32_t smallest = sizeof(Struct) < kSmallestStruct ? sizeof(Struct) : kSmallestStruct;
    const bool is_known = size >= smallest && size <= sizeof(Struct) && size % alignof(Struct) == 0;
    return is_known ? DS_STATUS_OK : fail_struct_size(argument, size, sizeof(Struct));
}

// A struct of the caller's with all fields: those that it lacks are zero, or as in `defaults`.
template <class Struct>
class Given {
public:
    Given(const Struct* given, const char* argument, const Struct& defaults = {})
        : status_(check_grown_struct(given, argument)), fields_(defaults) {
        if (!status_) memcpy(&fields_, given, given->struct_size);
        fields_.struct_size = sizeof fields_;
    }
    ds_status status() const { return status_; }
    const Struct* operator->() const { return &fields_; }
    const Struct& operator*() const { return fields_; }

private:
    ds_status status_;
    Struct fields_;
};

// Results for a struct of the caller's, which gets those that it has fields for.
template <class Struct>
class Results {
public:
    Results(Struct* to, const char* argument) : status_(check_grown_struct(to, argument)), to_(to) {
        fields_.struct_size = sizeof fields_;
    }
    ds_status status() const { return status_; }
    Struct* fields() { return &fields_; }
    Struct* operator->() { return &fields_; }
    ds_status give() {
        const uint32_t size = to_->struct_size;
        memcpy(to_, &fields_, size);
        to_->struct_size = size;
        return DS_STATUS_OK;
    }

private:
    ds_status status_;
    Struct* to_;
    Struct fields_{};
};

// ---- Numbers

inline ds_status check_range(const char* argument, const char* hint, int64_t value, int64_t smallest,
                             int64_t largest) {
    if (value >= smallest && value <= largest) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, hint, "%s is %ld; it must be %ld to %ld", argument,
                value, smallest, largest);
}

struct RangedNumber {
    const char* argument;
    const char* hint;
    int64_t value, smallest, largest;
};

// In their order: the first one that is out of range is reported.
template <int kCount>
ds_status check_ranges(const RangedNumber (&numbers)[kCount]) {
    for (const auto& [argument, hint, value, smallest, largest] : numbers)
        if (const ds_status status = check_range(argument, hint, value, smallest, largest)) return status;
    return DS_STATUS_OK;
}

}  // namespace doorstep
