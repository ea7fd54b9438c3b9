#include "runtime/cpu_features.h"

#include <cpuid.h>
#include <stdio.h>

namespace doorstep {
namespace {

constexpr uint32_t kLeaf1Fma = 1u << 12, kLeaf1OsXsave = 1u << 27, kLeaf1Avx = 1u << 28;
constexpr uint32_t kLeaf7Avx2 = 1u << 5, kLeaf7Bmi2 = 1u << 8;
constexpr uint32_t kXcr0SseAndAvx = 6;

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

const FeaturesAndText& detected() {
    static const FeaturesAndText result = detect();
    return result;
}

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
    return features;
}

const CpuFeatures& cpu_features() { return detected().features; }

const char* cpu_features_text() { return detected().text; }

}  // namespace doorstep
