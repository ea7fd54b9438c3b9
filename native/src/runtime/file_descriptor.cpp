#include "runtime/file_descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace doorstep {

FileDescriptorCopy::FileDescriptorCopy(int original) : descriptor_(fcntl(original, F_DUPFD_CLOEXEC, 0)) {
    if (descriptor_ >= 0) return;
    const int reason = errno;
    status_ = fail(DS_STATUS_INVALID_ARGUMENT, "fd",
                   reason == EBADF ? "pass a descriptor that the other API has exported, and only once"
                                   : "close files that are no longer needed, or raise the limit (ulimit -n)",
                   "file descriptor %d cannot be used: %s", original, strerror(reason));
}

FileDescriptorCopy::~FileDescriptorCopy() {
    if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace doorstep
