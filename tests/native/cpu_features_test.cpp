#include "runtime/machine.h"

#include <string.h>

#include <initializer_list>

#include "check.h"

namespace {

using namespace doorstep;

// Bits of the processor manuals: leaf 1 ecx 12 FMA, 27 OSXSAVE, 28 AVX; leaf 7 ebx 5 AVX2, 8 BMI2.
constexpr CpuidWords kHaswell{1u << 12 | 1u << 27 | 1u << 28, 1u << 5 | 1u << 8, 7};

CpuidWords without(CpuidWords words, uint32_t leaf1, uint32_t leaf7) {
    words.leaf1_ecx &= ~leaf1;
    words.leaf7_ebx &= ~leaf7;
    return words;
}

void a_processor_with_all_features_suffices() { CHECK(decode_cpu_features(kHaswell).sufficient()); }

void each_missing_feature_is_seen() {
    CHECK(!decode_cpu_features(without(kHaswell, 1u << 12, 0)).fma);
    CHECK(!decode_cpu_features(without(kHaswell, 0, 1u << 5)).avx2);
    CHECK(!decode_cpu_features(without(kHaswell, 1u << 28, 0)).avx2);
    CHECK(!decode_cpu_features(without(kHaswell, 0, 1u << 8)).bmi2);
    CHECK(!decode_cpu_features(without(kHaswell, 1u << 27, 0)).os_saves_avx);
    CHECK(!decode_cpu_features(CpuidWords{}).sufficient());
}

void an_operating_system_that_saves_no_avx_state_does_not_suffice() {
    for (uint32_t xcr0 : {0u, 1u, 2u, 3u, 4u, 5u}) {
        CpuidWords words = kHaswell;
        words.xcr0 = xcr0;
        CHECK(!decode_cpu_features(words).os_saves_avx);
        CHECK(!decode_cpu_features(words).sufficient());
    }
}

// Leaf 7 ebx: 16 F, 17 DQ, 28 CD, 30 BW, 31 VL; the operating system saves masks and upper registers (bits 5 to 7).
void avx512_needs_all_of_its_parts() {
    constexpr uint32_t kParts[] = {1u << 16, 1u << 17, 1u << 28, 1u << 30, 1u << 31};
    CpuidWords words = kHaswell;
    for (const uint32_t part : kParts) words.leaf7_ebx |= part;
    words.xcr0 = 0xE7;
    CHECK(decode_cpu_features(words).avx512 && decode_cpu_features(words).sufficient());
    CHECK(!decode_cpu_features(kHaswell).avx512);
    for (const uint32_t part : kParts) CHECK(!decode_cpu_features(without(words, 0, part)).avx512);
    CHECK(!decode_cpu_features(without(words, 0, 1u << 5)).avx512);
    for (const uint32_t saved : {0x7u, 0x67u, 0xA7u, 0xC7u}) {
        words.xcr0 = saved;
        CHECK(!decode_cpu_features(words).avx512);
    }
}

void the_text_tells_what_was_found() {
    const CpuFeatures& features = cpu_features();
    CHECK_EQUAL(strstr(cpu_features_text(), "avx2=1") != nullptr, features.avx2);
    CHECK_EQUAL(strstr(cpu_features_text(), "fma=1") != nullptr, features.fma);
    CHECK_EQUAL(strstr(cpu_features_text(), "bmi2=1") != nullptr, features.bmi2);
    CHECK_EQUAL(strstr(cpu_features_text(), "os_saves_avx=1") != nullptr, features.os_saves_avx);
}

}  // namespace

int main() {
    RUN(a_processor_with_all_features_suffices);
    RUN(each_missing_feature_is_seen);
    RUN(an_operating_system_that_saves_no_avx_state_does_not_suffice);
    RUN(avx512_needs_all_of_its_parts);
    RUN(the_text_tells_what_was_found);
}
