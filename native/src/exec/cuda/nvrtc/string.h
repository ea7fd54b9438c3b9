// For NVRTC, which knows memcpy, memset and the like, and has no headers of C.
#pragma once
