#include "exec/cuda/images.h"

#include <string.h>

#include "check.h"
#include "doorstep.h"

namespace {

using namespace doorstep;

constexpr KernelImage kImages[] = {
    {1, 0, "ptx", 4},   {1, 75, "a", 1}, {1, 80, "a", 1},  {1, 86, "a", 1},  {1, 100, "a", 1},
    {1, 120, "a", 1}, {2, 80, "a", 1}, {2, 89, "a", 1}, {2, 0, "ptx", 4},
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
    RUN(a_library_without_kernels_says_so);
}
