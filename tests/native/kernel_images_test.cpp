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

void a_device_gets_the_newest_image_of_its_generation_that_is_not_newer() {
    CHECK_EQUAL(found(1, 75), 75);
    CHECK_EQUAL(found(1, 80), 80);
    CHECK_EQUAL(found(1, 86), 86);
    CHECK_EQUAL(found(1, 87), 86);
    CHECK_EQUAL(found(1, 89), 86);
    CHECK_EQUAL(found(2, 87), 80);
    CHECK_EQUAL(found(2, 89), 89);
    CHECK_EQUAL(found(1, 103), 100);
    CHECK_EQUAL(found(1, 121), 120);
}

void no_image_of_another_generation_nor_a_newer_one_is_given() {
    CHECK_EQUAL(found(1, 70), -1);
    CHECK_EQUAL(found(1, 90), -1);
    CHECK_EQUAL(found(1, 110), -1);
    CHECK_EQUAL(found(2, 75), -1);
    CHECK_EQUAL(found(3, 80), -1);
}

// 25,686 bytes: new ones, and copies of every kind that LZMA tells apart.
std::vector<unsigned char> document() {
    std::vector<unsigned char> bytes;
    uint32_t state = 1;
    const auto draw = [&](size_t limit) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
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
constexpr char kStreamText[] =
    "\x00\x62\x93\xf3\xff\xdf\xff\x51\xd6\xaf\x90\x1b\xc1\x3b\x71\xca\xea\x46\xd9\x75\x3e\x91\x9c\xaf\xc9\x2e\xe8"
    "\xda\x79\x5c\xf0\x09\x1b\x21\x6c\x4a\xe7\xc2\x53\xbc\x7d\x6e\xa8\xe3\xc8\x12\xb1\x5e\x75\x13\xfe\x20\x69\xe7"
    "\xf3\x13\x93\xf0\x8f\x94\x69\xbb\xe7\xe5\xcb\xde\x1b\xb4\xa7\xb0\x2a\xeb\xce\xf6\xd9\x14\x02\xc2\xb3\x0b\xa6"
    "\xdc\x2e\xb0\xd3\xdd\x50\x77\x12\x39\x98\xf3\x55\x01\x3a\x0e\x9d\x29\x6c\x3a\x94\xe0\x76\xb9\xa4\x0b\xce\x63"
    "\x53\xea\x7e\x3a\xe2\xb8\xee\x51\x32\xb1\xbf\xc6\x19\xb7\xc2\xa0\x1a\x61\x44\xc7\x1e\x67\xa4\xe0\x8d\x15\x2a"
    "\x1c\x06\x2b\x1f\x92\x9d\xd6\x5f\xb4\x7e\x41\x26\xd5\x1d\xdf\xb5\x99\x2c\x88\xfd\x3e\x4d\xd2\x42\xdc\x5e\x8c"
    "\xb2\xe6\xc5\xa0\x06\x4c\x51\x9e\x6c\x6c\xc4\x07\x8f\x68\x8c\xa7\x96\x31\x43\x4f\xca\x82\x04\x2a\xcf\x70\x36"
    "\x5c\x5a\x3d\xfc\xa4\xa0\x9b\x63\x07\x4d\xa7\x91\xa8\xee\x3d\xd9\x82\xef\x94\xb4\xcf\x8c\x21\x34\x3c\x4c\x80"
    "\x2e\x2f\x10\x9a\xe4\x85\x9c\x7b\xa5\x4f\xd7\xc0\x63\xba\xdd\x66\xd4\xa6\x2d\x38\x3a\x3a\xba\x8d\xdb\xd2\xab"
    "\x88\xc1\x6f\xda\x7b\xd4\xaf\x28\xa5\x41\x73\x92\x4f\x9b\x43\x29\xae\x9b\x91\x60\xbc\x38\x4b\xa0\xce\x3c\x1a"
    "\xd6\x57\xcc\xe4\x22\x58\xf8\x42\xaf\x22\x4f\x3b\x09\x7a\x9d\x3f\x50\xbc\xe2\xc8\xc5\x4c\x15\x87\x07\xc4\x29"
    "\xf5\xe4\xaa\x0b\xa6\xca\x25\xfc\xbe\x3b\xb3\x25\x56\x38\x39\x01\xc8\x35\xf5\xa7\xc9\x38\x29\xa9\xb3\x25\xed"
    "\x9e\x66\x9e\xfb\x07\x6e\xfa\x10\xa6\x2a\xe7\xd0\x68\x68\xfc\xe4\xc5\xe5\xef\xfe\x10\x22\x08\x6e\x03\x7d\xd0"
    "\x05\x98\x17\x41\x19\x5e\xeb\xcc\xfb\x38\xc8\x8f\x31\x94\x3a\x31\xed\xe4\x7d\x04\x31\xf1\x30\x60\x1d\xd0\x32"
    "\x65\xa4\xbc\x8b\xee\xf5\xd2\xe1\x8c\x03\x9f\xbf\xa1\x2c\xe9\x33\x36\x6f\x94\xff\xff\xf5\xbc\xdd\x8e";
const auto* const kStream = reinterpret_cast<const unsigned char*>(kStreamText);
constexpr size_t kStreamBytes = sizeof kStreamText - 1;

void an_image_is_the_part_of_its_stream_that_its_entry_names() {
    const std::vector<unsigned char> all = document();
    CHECK_EQUAL(all.size(), size_t{25686});
    for (size_t offset : {size_t{0}, size_t{16}, size_t{9008}}) {
        for (size_t bytes : {size_t{1}, size_t{5000}, all.size() - offset}) {
            const OwnedImage image = unpack_image({1, 90, kStream, kStreamBytes, offset, bytes});
            CHECK(image.data);
            CHECK_EQUAL(image.bytes, bytes);
            CHECK_EQUAL(memcmp(image.data.get(), all.data() + offset, bytes), 0);
        }
    }
}

void a_damaged_stream_is_an_error() {
    const std::vector<unsigned char> all = document();
    for (size_t left = 0; left < kStreamBytes / 2; left++) {
        const std::vector<unsigned char> cut(kStream, kStream + left);
        CHECK(!unpack_image({1, 90, cut.data(), left, 0, all.size()}).data);
        CHECK_EQUAL(last_status(), DS_STATUS_INTERNAL);
    }
    // Other damage gives an error or other bytes, and no access beyond the stream or the image.
    for (size_t bit = 0; bit < 8 * kStreamBytes; bit++) {
        std::vector<unsigned char> changed(kStream, kStream + kStreamBytes);
        changed[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
        unpack_image({1, 90, changed.data(), kStreamBytes, 0, all.size()});
    }
}

// These tests are built without images, which the library supports.
void a_library_without_kernels_says_so() {
    int count = -1;
    kernel_images(&count);
    CHECK_EQUAL(count, 0);
    CHECK(!find_cubin(1, 90));
    CHECK(!find_ptx(1));
    CHECK(!compiler_knows(90));
    CHECK_EQUAL(strcmp(ds_cuda_architectures(), ""), 0);

    ds_cuda_compile_info info = {};
    info.struct_size = sizeof info;
    CHECK_EQUAL(ds_cuda_compile("sm_103", 1, &info), DS_STATUS_INVALID_ARGUMENT);
    ds_error error = {};
    error.struct_size = sizeof error;
    CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
    CHECK(strstr(error.message, "built without a compiler"));
}

}  // namespace

int main() {
    RUN(a_device_gets_the_newest_image_of_its_generation_that_is_not_newer);
    RUN(no_image_of_another_generation_nor_a_newer_one_is_given);
    RUN(an_image_is_the_part_of_its_stream_that_its_entry_names);
    RUN(a_damaged_stream_is_an_error);
    RUN(a_library_without_kernels_says_so);
}
