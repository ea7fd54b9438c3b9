// Memory and resources that somebody else made, and must not end while they are used here.
#pragma once

#include "doorstep.h"

namespace doorstep {

// Who is let go with them. Without `release` nobody is.
struct ForeignOwner {
    void* owner = nullptr;
    ds_release_owner release = nullptr;
};

}  // namespace doorstep
