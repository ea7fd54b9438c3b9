// Memory and resources that other code created and must keep valid while they are used here.
#pragma once

#include "doorstep.h"

namespace doorstep {

// An owner, and the function that releases it. A null `release`: nothing is released.
struct ForeignOwner {
    void* owner = nullptr;
    ds_release_owner release = nullptr;
};

}  // namespace doorstep
