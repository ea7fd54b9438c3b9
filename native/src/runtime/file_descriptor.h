// A second file descriptor for what one of the caller's stands for. It is handed to whoever takes descriptors over only
// if that succeeds, so that a failure leaves the caller's as it was.
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
    // Somebody else has it now.
    void give_away() { descriptor_ = -1; }

private:
    int descriptor_;
    ds_status status_ = DS_STATUS_OK;
};

}  // namespace doorstep
