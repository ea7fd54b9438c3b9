// Memory and resources that other code created and must keep valid while they are used here.
#pragma once

#include "doorstep.h"

namespace doorstep {

// The owner to release with them. Without `release` there is none.
struct ForeignOwner {
    void* owner = nullptr;
    ds_release_owner release = nullptr;
};

}  // namespace doorstep
