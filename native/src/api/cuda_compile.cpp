// Machine code of the kernels: the embedded architectures, and compiling for others without a device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "exec/cuda/images.h"
#include "exec/cuda/ptx_compiler.h"

namespace doorstep {
namespace {

// The number in "sm_103"; 0 if the name has another form.
int parse_architecture(const char* name) {
    if (strncmp(name, "sm_", 3) != 0) return 0;
    const char* digits = name + 3;
    const size_t length = strspn(digits, "0123456789");
    if (length == 0 || length > 6 || digits[length] || digits[0] == '0') return 0;
    return atoi(digits);
}

struct ArchitectureNames {
    ArchitectureNames() {
        int count = 0;
        size_t length = 0;
        const KernelImage* images = kernel_images(&count);
        for (const KernelImage* image = images; image != images + count; ++image) {
            if (image->module != 1 || image->architecture == 0) continue;
            length += static_cast<size_t>(snprintf(text + length, sizeof text - length, "%ssm_%d", length ? "," : "",
                                                   image->architecture));
        }
    }

    char text[256] = "";
};

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_cuda_compile(const char* architecture, int64_t num_agents, ds_cuda_compile_info* info) {
    if (!architecture) return fail_null("architecture");
    if (const ds_status status = check_struct(info, "info")) return status;
    const char* hint = "a world has one to eight agents";
    if (const ds_status status = check_range("num_agents", hint, num_agents, 1, DS_MAX_AGENTS)) return status;
    const int number = parse_architecture(architecture);
    if (number == 0) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "architecture", "pass a name such as sm_103",
                    "architecture is \"%.64s\"; it must be sm_ and a number", architecture);
    }
    CompiledImage image;
    return compile_ptx(static_cast<int>(num_agents), number, &image, info);
}

const char* ds_cuda_architectures(void) {
    static const ArchitectureNames names;
    return names.text;
}
