#include "sharing.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"

namespace stand_in {

FileDescriptor FileDescriptor::of(int number) {
    struct stat status;
    if (fstat(number, &status)) return {};
    return {number, status.st_dev, status.st_ino};
}

bool FileDescriptor::is_open() const {
    const FileDescriptor now = of(number);
    return now.number >= 0 && now.device == device && now.file == file;
}

uint64_t FileDescriptor::size() const {
    struct stat status;
    return fstat(number, &status) ? 0 : static_cast<uint64_t>(status.st_size);
}

// The link of a memory file reads "/memfd:name (deleted)".
std::string FileDescriptor::name() const {
    char target[PATH_MAX];
    const ssize_t length = readlink(text("/proc/self/fd/%d", number).c_str(), target, sizeof target);
    const std::string link(target, length > 0 ? static_cast<size_t>(length) : 0), prefix = "/memfd:";
    if (!link.starts_with(prefix)) return "";
    return link.substr(prefix.size(), link.find(' ') - prefix.size());
}

FileDescriptor make_file(const char* name, uint64_t bytes) {
    const int number = memfd_create(name, MFD_CLOEXEC);
    if (number < 0 || ftruncate(number, static_cast<off_t>(bytes))) return {};
    return FileDescriptor::of(number);
}

void close_owned(const char* function, const FileDescriptor& descriptor) {
    const int number = descriptor.number;
    if (descriptor.is_open()) close(number);
    else driver().report.violation(text("%s: somebody else has closed file descriptor %d", function, number));
}

}  // namespace stand_in
