#include "runtime/machine.h"

#include <cpuid.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace doorstep {

// ---- Features of the CPU ----

namespace {

constexpr uint32_t kLeaf1Fma = 1u << 12, kLeaf1OsXsave = 1u << 27, kLeaf1Avx = 1u << 28;
constexpr uint32_t kLeaf7Avx2 = 1u << 5, kLeaf7Bmi2 = 1u << 8;
constexpr uint32_t kLeaf7Avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;  // F, DQ, CD, BW, VL
constexpr uint32_t kXcr0SseAndAvx = 6, kXcr0Avx512 = 0xE6;

struct FeaturesAndText {
    CpuFeatures features;
    char text[64];
};

FeaturesAndText detect() {
    FeaturesAndText result;
    const CpuFeatures& features = result.features = decode_cpu_features(read_cpuid());
    snprintf(result.text, sizeof result.text, "avx2=%d,fma=%d,bmi2=%d,os_saves_avx=%d", features.avx2, features.fma,
             features.bmi2, features.os_saves_avx);
    return result;
}

// When the library is loaded: a fork beside the first call would find them half known.
const FeaturesAndText detected = detect();

}  // namespace

CpuidWords read_cpuid() {
    CpuidWords words{};
    uint32_t eax, ebx, ecx, edx;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) words.leaf1_ecx = ecx;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) words.leaf7_ebx = ebx;
    if (words.leaf1_ecx & kLeaf1OsXsave) __asm__("xgetbv" : "=a"(words.xcr0), "=d"(edx) : "c"(0));
    return words;
}

CpuFeatures decode_cpu_features(const CpuidWords& words) {
    CpuFeatures features;
    features.os_saves_avx = (words.leaf1_ecx & kLeaf1OsXsave) && (words.xcr0 & kXcr0SseAndAvx) == kXcr0SseAndAvx;
    features.avx2 = (words.leaf1_ecx & kLeaf1Avx) && (words.leaf7_ebx & kLeaf7Avx2);
    features.fma = words.leaf1_ecx & kLeaf1Fma;
    features.bmi2 = words.leaf7_ebx & kLeaf7Bmi2;
    features.avx512 = features.sufficient() && (words.leaf7_ebx & kLeaf7Avx512) == kLeaf7Avx512 &&
                      (words.xcr0 & kXcr0Avx512) == kXcr0Avx512;
    return features;
}

const CpuFeatures& cpu_features() { return detected.features; }

const char* cpu_features_text() { return detected.text; }

// ---- Control groups ----

namespace {

constexpr int64_t kUnlimited = int64_t{1} << 60;  // version 1 reports a number near 2**63 for "no limit"

// One control group: a folder below /sys/fs/cgroup.
struct Group {
    char folder[1024];

    bool read(const char* file, char* text, size_t size) const {
        char path[1200];
        snprintf(path, sizeof path, "%s/%s", folder, file);
        return read_text_file(path, text, size);
    }

    // -1 if the file is missing or does not contain a number.
    int64_t read_number(const char* file) const {
        char text[64];
        if (!read(file, text, sizeof text)) return -1;
        char* end;
        const int64_t value = strtoll(text, &end, 10);
        return end == text ? -1 : value;
    }

    // The value of a row "name number" of a table such as memory.stat; 0 if it is missing.
    int64_t read_row(const char* file, const char* name) const {
        char text[8192];
        if (!read(file, text, sizeof text)) return 0;
        const size_t length = strlen(name);
        for (const char* line = text; line; line = strchr(line, '\n')) {
            if (*line == '\n') ++line;
            if (strncmp(line, name, length) == 0 && line[length] == ' ') return strtoll(line + length, nullptr, 10);
        }
        return 0;
    }
};

void limit_memory(CgroupLimits* limits, int64_t limit, int64_t used, int64_t reclaimable) {
    if (limit < 0 || limit >= kUnlimited || used < 0) return;
    int64_t available = limit - used + reclaimable;
    if (available < 0) available = 0;
    if (available > limit) available = limit;
    if (limits->memory_available < 0 || available < limits->memory_available) limits->memory_available = available;
}

void limit_cpus(CgroupLimits* limits, int64_t quota, int64_t period) {
    if (quota <= 0 || period <= 0) return;
    const int64_t cpus = (quota + period - 1) / period;
    if (limits->cpus == 0 || cpus < limits->cpus) limits->cpus = cpus;
}

void read_version_2(const Group& group, CgroupLimits* limits) {
    limit_memory(limits, group.read_number("memory.max"), group.read_number("memory.current"),
                 group.read_row("memory.stat", "inactive_file"));
    char text[64];
    int64_t quota, period;
    if (group.read("cpu.max", text, sizeof text) && sscanf(text, "%ld %ld", &quota, &period) == 2) {
        limit_cpus(limits, quota, period);
    }
}

void read_version_1_memory(const Group& group, CgroupLimits* limits) {
    limit_memory(limits, group.read_number("memory.limit_in_bytes"), group.read_number("memory.usage_in_bytes"),
                 group.read_row("memory.stat", "total_inactive_file"));
}

void read_version_1_cpu(const Group& group, CgroupLimits* limits) {
    limit_cpus(limits, group.read_number("cpu.cfs_quota_us"), group.read_number("cpu.cfs_period_us"));
}

bool lists_controller(const char* controllers, const char* name) {
    const size_t length = strlen(name);
    for (const char* at = strstr(controllers, name); at; at = strstr(at + 1, name)) {
        const bool starts = at == controllers || at[-1] == ',';
        if (starts && (at[length] == ',' || at[length] == '\0')) return true;
    }
    return false;
}

// Every limit from the process's own group up to the root applies. Inside a container the path often names folders of
// the host: those are skipped, and the walk ends at the root, which there is the container's own group.
using ReadGroup = void (*)(const Group& group, CgroupLimits* limits);
void walk_up(const char* root, const char* controllers, char* path, ReadGroup read, CgroupLimits* limits) {
    for (;;) {
        Group group;
        const char* separator = *controllers ? "/" : "";
        snprintf(group.folder, sizeof group.folder, "%s/sys/fs/cgroup%s%s%s", root, separator, controllers, path);
        read(group, limits);
        char* last = strrchr(path, '/');
        if (!last) return;
        *last = '\0';
    }
}

// A line of /proc/self/cgroup: "number:controllers:path"; version 2 has no controllers.
void read_line(const char* root, char* line, CgroupLimits* limits) {
    char* controllers = strchr(line, ':');
    char* path = controllers ? strchr(controllers + 1, ':') : nullptr;
    if (!path) return;
    ++controllers;
    *path++ = '\0';
    if (strcmp(path, "/") == 0) *path = '\0';
    if (!*controllers) {
        walk_up(root, "", path, read_version_2, limits);
    } else if (lists_controller(controllers, "memory")) {
        walk_up(root, controllers, path, read_version_1_memory, limits);
    } else if (lists_controller(controllers, "cpu")) {
        walk_up(root, controllers, path, read_version_1_cpu, limits);
    }
}

}  // namespace

bool read_text_file(const char* path, char* text, size_t size) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    size_t filled = 0;
    while (filled < size - 1) {
        const ssize_t got = read(file, text + filled, size - 1 - filled);
        if (got <= 0) break;
        filled += static_cast<size_t>(got);
    }
    close(file);
    text[filled] = '\0';
    return filled > 0;
}

CgroupLimits read_cgroup_limits(const char* root) {
    CgroupLimits limits{-1, 0};
    char path[1024], text[8192];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!read_text_file(path, text, sizeof text)) return limits;
    for (char* line = text; line && *line;) {
        char* end = strchr(line, '\n');
        if (end) *end = '\0';
        read_line(root, line, &limits);
        line = end ? end + 1 : nullptr;
    }
    return limits;
}

}  // namespace doorstep
