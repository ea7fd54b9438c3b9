// Features of this CPU and its operating system. Compiled for any x86-64, so that an older CPU gets an error message.
#pragma once

#include <stdint.h>

namespace doorstep {

// Raw results: cpuid leaf 1 (ecx), leaf 7 (ebx), and the extended control register 0 (0 if it cannot be read).
struct CpuidWords {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx;
    uint32_t xcr0;
};

struct CpuFeatures {
    bool avx2, fma, bmi2;
    bool os_saves_avx;  // the operating system saves the upper halves of the registers

    bool sufficient() const { return avx2 && fma && bmi2 && os_saves_avx; }
};

CpuidWords read_cpuid();
CpuFeatures decode_cpu_features(const CpuidWords& words);

// Of this machine, and the same as text: "avx2=1,fma=1,bmi2=1,os_saves_avx=1".
const CpuFeatures& cpu_features();
const char* cpu_features_text();

}  // namespace doorstep
