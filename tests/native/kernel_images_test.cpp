#include "exec/cuda/images.h"

#include "check.h"

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

}  // namespace
