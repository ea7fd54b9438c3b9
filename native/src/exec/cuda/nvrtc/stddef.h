// For NVRTC, which knows size_t and has no headers of C.
#pragma once
