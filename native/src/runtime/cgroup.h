// The limits that control groups (containers, batch systems, systemd) put on this process. Versions 1 and 2.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace doorstep {

struct CgroupLimits {
    int64_t memory_available;  // bytes until the tightest limit, reclaimable file cache counted as free; -1: no limit
    int64_t cpus;              // the smallest quota, in CPUs, rounded up; 0: no limit
};

// root: folder that contains proc and sys; tests pass another.
CgroupLimits read_cgroup_limits(const char* root = "");

// Reads a whole small text file and appends a zero. False if it cannot be read.
bool read_text_file(const char* path, char* text, size_t size);

}  // namespace doorstep
