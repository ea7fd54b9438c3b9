// A duplicate of a caller's file descriptor. APIs that take descriptors over get the duplicate and keep it only on
// success, so that a failure leaves the caller's descriptor as it was.
#pragma once

#include "runtime/status.h"

namespace doorstep {

class FileDescriptorCopy {
public:
    explicit FileDescriptorCopy(int original);
    ~FileDescriptorCopy();
    FileDescriptorCopy(const FileDescriptorCopy&) = delete;
    FileDescriptorCopy& operator=(const FileDescriptorCopy&) = delete;

    // INVALID_ARGUMENT, with the thread's error set, if the original is not open.
    ds_status status() const { return status_; }
    int get() const { return descriptor_; }
    // Another API owns the duplicate now.
    void give_away() { descriptor_ = -1; }

private:
    int descriptor_;
    ds_status status_ = DS_STATUS_OK;
};

}  // namespace doorstep
