// Reads machine code and PTX as far as the stand-in must know what it was given.
#pragma once

#include <stdint.h>

#include <set>
#include <string>

namespace stand_in {

struct Image {
    int code = 0;           // what loading it returns
    std::string problem{};  // why
    int num_agents = 0;
    std::set<std::string> kernels{};
};

Image read_image(const void* data, int64_t compute_capability, int64_t driver_version);

}  // namespace stand_in
