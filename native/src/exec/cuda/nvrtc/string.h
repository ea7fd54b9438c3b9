// For NVRTC, which provides memcpy, memset and the like, and has no C headers.
#pragma once
