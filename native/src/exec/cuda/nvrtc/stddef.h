// For NVRTC, which defines size_t and has no C headers.
#pragma once
