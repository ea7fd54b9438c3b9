// A driver of CUDA 11.2, which has no cuGetProcAddress.
#define STAND_IN_EXPORT extern "C" __attribute__((visibility("default")))

STAND_IN_EXPORT int cuInit(unsigned) { return 0; }

STAND_IN_EXPORT int cuDriverGetVersion(int* version) {
    *version = 11020;
    return 0;
}

STAND_IN_EXPORT int cuDeviceGetCount(int* count) {
    *count = 1;
    return 0;
}
