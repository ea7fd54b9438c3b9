// What this machine and its operating system offer the process: features of the CPU, limits of control groups.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace doorstep {

// ---- Features of the CPU ----

// Features of this CPU and its operating system. Compiled for any x86-64, so that an older CPU gets an error message.

// Raw results: cpuid leaf 1 (ecx), leaf 7 (ebx), and the extended control register 0 (0 if it cannot be read).
struct CpuidWords {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx;
    uint32_t xcr0;
};

struct CpuFeatures {
    bool avx2, fma, bmi2;
    bool os_saves_avx;  // the operating system saves the upper halves of the registers
    bool avx512;        // what x86-64-v4 has: F, BW, CD, DQ, VL, saved by the operating system; not required

    bool sufficient() const { return avx2 && fma && bmi2 && os_saves_avx; }
};

CpuidWords read_cpuid();
CpuFeatures decode_cpu_features(const CpuidWords& words);

// Of this machine, and the same as text: "avx2=1,fma=1,bmi2=1,os_saves_avx=1".
const CpuFeatures& cpu_features();
const char* cpu_features_text();

// ---- Control groups ----

// The limits that control groups (containers, batch systems, systemd) put on this process. Versions 1 and 2.
struct CgroupLimits {
    int64_t memory_available;  // bytes until the tightest limit, reclaimable file cache counted as free; -1: no limit
    int64_t cpus;              // the smallest quota, in CPUs, rounded up; 0: no limit
};

// root: folder that contains proc and sys; tests pass another.
CgroupLimits read_cgroup_limits(const char* root = "");

// Reads a whole small text file and appends a zero. False if it cannot be read.
bool read_text_file(const char* path, char* text, size_t size);

}  // namespace doorstep
