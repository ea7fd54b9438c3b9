// Reads the properties of machine code and PTX that the stand-in needs.
#pragma once

#include <stdint.h>

#include <set>
#include <string>

namespace stand_in {

struct Image {
    int code = 0;           // result of loading it
    std::string problem{};  // the reason
    int num_agents = 0;
    std::set<std::string> kernels{};
};

Image read_image(const void* data, int64_t compute_capability, int64_t driver_version);

}  // namespace stand_in
