#include "exec/cuda/images.h"

#include <string.h>

#include <algorithm>
#include <vector>

#include "check.h"
#include "doorstep.h"
#include "runtime/status.h"

namespace {

using namespace doorstep;

constexpr KernelImage named(int module, int architecture) { return {module, architecture, nullptr, 0, 0, 0}; }

constexpr KernelImage kImages[] = {
    named(1, 0),   named(1, 75), named(1, 80), named(1, 86), named(1, 100),
    named(1, 120), named(2, 80), named(2, 89), named(2, 0),
};

// The architecture of the image chosen for a device; -1 if none is.
int found(int num_agents, int compute_capability) {
    const KernelImage* image = find_cubin(kImages, sizeof kImages / sizeof *kImages, num_agents, compute_capability);
    if (image) CHECK_EQUAL(image->module, num_agents);
    return image ? image->architecture : -1;
}

// The newest of its generation that is not newer, of another generation none.
LAW(a_device_gets_the_image_made_for_it) {
    const int rows[][3] = {{1, 75, 75}, {1, 80, 80}, {1, 86, 86},   {1, 87, 86},   {1, 89, 86}, {2, 87, 80},
                           {2, 89, 89}, {1, 70, -1}, {1, 90, -1}, {1, 103, 100}, {1, 121, 120}, {1, 110, -1},
                           {2, 75, -1}, {3, 80, -1}};
    for (const auto& [agents, capability, image] : rows) CHECK_EQUAL(found(agents, capability), image);
}

// 25,686 bytes: new ones, and copies of every kind that LZMA tells apart.
std::vector<unsigned char> document() {
    std::vector<unsigned char> bytes;
    uint32_t state = 1;
    const auto draw = [&](size_t limit) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        return state % limit;
    };
    size_t distances[3] = {1, 1, 1};  // of the last copies, the latest first
    for (int step = 0; step < 150; step++) {
        const size_t kind = draw(6);
        if (kind == 0 || bytes.empty()) {
            for (size_t left = 1 + draw(4); left; left--) bytes.push_back(static_cast<unsigned char>(draw(256)));
            continue;
        }
        if (kind == 1) {
            std::copy_backward(distances, distances + 2, distances + 3);
            distances[0] = 1 + draw(bytes.size());
        } else if (kind >= 3) {
            std::rotate(distances, distances + kind - 3, distances + kind - 2);
        }
        size_t length = kind == 2 ? 1 : draw(4) == 0 ? 2 + draw(2000) : 2 + draw(24);
        if (distances[0] > bytes.size()) length = 0;
        for (; length; length--) bytes.push_back(bytes[bytes.size() - distances[0]]);
    }
    return bytes;
}

// What Python's lzma module makes of it, with the settings in wheel_build/kernel_image_file.py.
constexpr char kStreamDigits[] =
    "006293f3ffdfff51d6af901bc13b71caea46d9753e919cafc92ee8da795cf0091b216c4ae7c253bc7d6ea8e3c812b15e7513fe2069e7f3"
    "1393f08f9469bbe7e5cbde1bb4a7b02aebcef6d91402c2b30ba6dc2eb0d3dd5077123998f355013a0e9d296c3a94e076b9a40bce6353ea"
    "7e3ae2b8ee5132b1bfc619b7c2a01a6144c71e67a4e08d152a1c062b1f929dd65fb47e4126d51ddfb5992c88fd3e4dd242dc5e8cb2e6c5"
    "a0064c519e6c6cc4078f688ca79631434fca82042acf70365c5a3dfca4a09b63074da791a8ee3dd982ef94b4cf8c21343c4c802e2f109a"
    "e4859c7ba54fd7c063badd66d4a62d383a3aba8ddbd2ab88c16fda7bd4af28a54173924f9b4329ae9b9160bc384ba0ce3c1ad657cce422"
    "58f842af224f3b097a9d3f50bce2c8c54c158707c429f5e4aa0ba6ca25fcbe3bb32556383901c835f5a7c93829a9b325ed9e669efb076e"
    "fa10a62ae7d06868fce4c5e5effe1022086e037dd005981741195eebccfb38c88f31943a31ede47d0431f130601dd03265a4bc8beef5d2"
    "e18c039fbfa12ce933366f94fffff5bcdd8e";
constexpr size_t kStreamBytes = sizeof kStreamDigits / 2;
const std::vector<unsigned char>& stream() {
    static const std::vector<unsigned char> bytes = [] {
        std::vector<unsigned char> read(kStreamBytes);
        for (size_t i = 0; i < kStreamBytes; i++) sscanf(&kStreamDigits[2 * i], "%2hhx", &read[i]);
        return read;
    }();
    return bytes;
}

LAW(an_image_is_the_part_of_its_stream_that_its_entry_names) {
    const std::vector<unsigned char> all = document();
    CHECK_EQUAL(all.size(), size_t{25686});
    for (size_t offset : {size_t{0}, size_t{16}, size_t{9008}}) {
        for (size_t bytes : {size_t{1}, size_t{5000}, all.size() - offset}) {
            const OwnedImage image = unpack_image({1, 90, stream().data(), kStreamBytes, offset, bytes});
            CHECK(image.data);
            CHECK_EQUAL(image.bytes, bytes);
            CHECK_EQUAL(memcmp(image.data.get(), all.data() + offset, bytes), 0);
        }
    }
}

LAW(a_damaged_stream_is_an_error) {
    const std::vector<unsigned char> all = document();
    for (size_t left = 0; left < kStreamBytes / 2; left++) {
        const std::vector<unsigned char> cut(stream().begin(), stream().begin() + static_cast<ptrdiff_t>(left));
        CHECK(!unpack_image({1, 90, cut.data(), left, 0, all.size()}).data);
        CHECK_EQUAL(last_status(), DS_STATUS_INTERNAL);
    }
    // Other damage gives an error or other bytes, and no access beyond the stream or the image.
    for (size_t bit = 0; bit < 8 * kStreamBytes; bit++) {
        std::vector<unsigned char> changed = stream();
        changed[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
        unpack_image({1, 90, changed.data(), kStreamBytes, 0, all.size()});
    }
}

// These tests are built without images, which the library supports.
LAW(a_library_without_kernels_says_so) {
    int count = -1;
    kernel_images(&count);
    CHECK_EQUAL(count, 0);
    CHECK(!find_cubin(1, 90) && !find_ptx(1) && !compiler_knows(90));
    CHECK_EQUAL(strcmp(ds_cuda_architectures(), ""), 0);

    auto info = sized<ds_cuda_compile_info>();
    CHECK_EQUAL(ds_cuda_compile("sm_103", 1, &info), DS_STATUS_INVALID_ARGUMENT);
    auto error = sized<ds_error>();
    CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
    CHECK(strstr(error.message, "built without a compiler"));
}

}  // namespace
