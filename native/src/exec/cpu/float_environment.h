// The floating-point environment every world is stepped in, whatever the caller's is.
#pragma once

#include <immintrin.h>

namespace doorstep {

// Round to nearest, denormals kept, all exceptions masked: the state a process starts in. Put back at the end.
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
