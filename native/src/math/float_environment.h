// The floating-point environment that worlds are stepped in, independent of the caller's.
#pragma once

#include <immintrin.h>

namespace doorstep {

// Round to nearest, denormals kept, all exceptions masked, as when a process starts. The destructor restores the old.
class DefaultFloatEnvironment {
public:
    DefaultFloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }
    ~DefaultFloatEnvironment() { _mm_setcsr(saved_); }
    DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
    DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

private:
    static constexpr unsigned kDefault = 0x1F80;
    unsigned saved_;
};

}  // namespace doorstep
