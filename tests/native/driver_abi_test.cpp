// What native/src/runtime/cuda declares of the driver has the numbers, sizes and parameters of NVIDIA's headers. Most
// of it is checked when this file is compiled.
#include <stddef.h>

#include <type_traits>

#include "check.h"
#include "runtime/cuda/driver.h"

// Ours, under names that the macros of NVIDIA's header leave alone.
namespace ours {

using namespace doorstep;

#define OUR_FUNCTION(name, version, parameters) using name##_pointer = CUresult(*) parameters;
DS_DRIVER_TABLE(OUR_FUNCTION)
#undef OUR_FUNCTION
#define X(name) constexpr long long name##_value = static_cast<long long>(name);
#include "driver_numbers.inc"
#undef X

const CUstream legacy_stream = CU_STREAM_LEGACY, per_thread_stream = CU_STREAM_PER_THREAD;

}  // namespace ours

#include <cudaTypedefs.h>

namespace {

template <class T>
concept Complete = requires { sizeof(T); };
template <class T>
constexpr bool kIsNumber = std::is_integral_v<T> || std::is_enum_v<T>;

// Passed alike: numbers of one size (an enumeration is a number), or pointers to values that are alike.
template <class Ours, class Theirs>
constexpr bool alike() {
    using A = std::remove_cv_t<Ours>;
    using B = std::remove_cv_t<Theirs>;
    if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
        return alike<std::remove_pointer_t<A>, std::remove_pointer_t<B>>();
    } else if constexpr (std::is_void_v<A> || std::is_void_v<B> || std::is_floating_point_v<A>) {
        return std::is_same_v<A, B>;
    } else if constexpr (!Complete<A> || !Complete<B>) {
        return std::is_class_v<A> && std::is_class_v<B> && Complete<A> == Complete<B>;
    } else {
        return kIsNumber<A> == kIsNumber<B> && std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B) &&
               alignof(A) == alignof(B);
    }
}

template <class Ours, class Theirs>
struct Functions;
template <class OurResult, class... Ours, class TheirResult, class... Theirs>
struct Functions<OurResult (*)(Ours...), TheirResult (*)(Theirs...)> {
    static constexpr bool equal() {
        if constexpr (sizeof...(Ours) != sizeof...(Theirs)) return false;
        else return (alike<OurResult, TheirResult>() && ... && alike<Ours, Theirs>());
    }
};

// NVIDIA's type of a function is named after the version that introduced its parameters, which is the one we request.
#define SAME_FUNCTION(name, version, parameters) \
    static_assert(Functions<ours::name##_pointer, PFN_##name##_v##version>::equal(), #name);
DS_DRIVER_TABLE(SAME_FUNCTION)

#define X(name) static_assert(ours::name##_value == static_cast<long long>(name), #name);
#include "driver_numbers.inc"
#undef X

#define SAME_SIZE(our_name, their_name) static_assert(sizeof(doorstep::our_name) == sizeof(::their_name));
#define SAME_FIELD(our_name, our_field, their_name, their_field)                                \
    static_assert(offsetof(doorstep::our_name, our_field) == offsetof(::their_name, their_field)); \
    static_assert(sizeof(doorstep::our_name::our_field) == sizeof(::their_name::their_field));
#define AGAIN() FIELDS
#define EXPAND(...) EXPAND1(EXPAND1(EXPAND1(EXPAND1(__VA_ARGS__))))
#define EXPAND1(...) EXPAND2(EXPAND2(EXPAND2(EXPAND2(__VA_ARGS__))))
#define EXPAND2(...) __VA_ARGS__
#define NOTHING
#define FIELDS(name, field, ...) \
    SAME_FIELD(name, field, name, field) __VA_OPT__(AGAIN NOTHING()(name, __VA_ARGS__))
#define SAME_STRUCT(name, ...) SAME_SIZE(name, name) EXPAND(FIELDS(name, __VA_ARGS__))

SAME_SIZE(CUuuid, CUuuid)
SAME_STRUCT(CUmemLocation, type, id)
SAME_STRUCT(CUDA_MEMCPY2D, srcXInBytes, srcY, srcMemoryType, srcHost, srcDevice, srcArray, srcPitch, dstXInBytes, dstY,
            dstMemoryType, dstHost, dstDevice, dstArray, dstPitch, WidthInBytes, Height)
SAME_STRUCT(CUmemAllocationProp, type, requestedHandleTypes, location, win32HandleMetaData, allocFlags,
            allocFlags.usage)
SAME_STRUCT(CUmemAccessDesc, location, flags)
SAME_STRUCT(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, type, handle, handle.fd, size, flags, reserved)
SAME_STRUCT(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, offset, size, flags, reserved)
SAME_STRUCT(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, type, handle, handle.fd, flags, reserved)
#define SAME_SEMAPHORE_PARAMS(their_name)                                                        \
    SAME_SIZE(CUDA_EXTERNAL_SEMAPHORE_PARAMS, their_name)                                        \
    SAME_FIELD(CUDA_EXTERNAL_SEMAPHORE_PARAMS, fence_value, their_name, params.fence.value)      \
    SAME_FIELD(CUDA_EXTERNAL_SEMAPHORE_PARAMS, flags, their_name, flags)                         \
    SAME_FIELD(CUDA_EXTERNAL_SEMAPHORE_PARAMS, reserved, their_name, reserved)
SAME_SEMAPHORE_PARAMS(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS)
SAME_SEMAPHORE_PARAMS(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS)

void default_streams_have_the_drivers_handles() {
    CHECK_EQUAL(reinterpret_cast<uint64_t>(ours::legacy_stream), reinterpret_cast<uint64_t>(CU_STREAM_LEGACY));
    CHECK_EQUAL(reinterpret_cast<uint64_t>(ours::per_thread_stream), reinterpret_cast<uint64_t>(CU_STREAM_PER_THREAD));
}

}  // namespace

int main() { RUN(default_streams_have_the_drivers_handles); }
