#include "kernel_launch.h"

#include <stdlib.h>

#include <array>
#include <utility>

#include "driver.h"
#include "emulation.h"
#include "exec/cpu/float_environment.h"
#include "sim/observe.h"
#include "sim/world.h"

namespace stand_in {
namespace {

template <int... Index>
constexpr std::array<int64_t, DS_MAX_AGENTS> world_bytes(std::integer_sequence<int, Index...>) {
    return {int64_t{doorstep::kBlockBytes<doorstep::World<Index + 1>>}...};
}
constexpr auto kWorldBytes = world_bytes(std::make_integer_sequence<int, DS_MAX_AGENTS>());

// Collects the memory that a kernel accesses; reports the first problem.
class Accesses {
public:
    explicit Accesses(const Launch& launch, Task* task) : launch_(launch), task_(task) {}

    void add(const char* name, const void* address, int64_t bytes, bool writes) {
        const std::string what = launch_.kernel + ": " + name;
        const uint64_t first = reinterpret_cast<uint64_t>(address);
        Access access = access_to(what, first, static_cast<uint64_t>(bytes), writes, launch_.device);
        code = access.allocation ? code : int{kIllegalAddress};
        if (access.allocation) task_->accesses.push_back(std::move(access));
    }
    void add_aligned(const char* name, const void* address, int64_t bytes, uint64_t alignment) {
        add(name, address, bytes, true);
        if (reinterpret_cast<uint64_t>(address) % alignment)
            code = refuse(kMisalignedAddress,
                          text("%s: %s is not aligned to %lu bytes", launch_.kernel.c_str(), name, alignment));
    }

    int code = kSuccess;

private:
    const Launch& launch_;
    Task* task_;
};

// The bytes of a tensor, from the shape in its row of the table.
int64_t tensor_bytes(const char* shape, int64_t element, int64_t num_worlds, int agents) {
    int64_t bytes = element;
    for (const char* at = shape; *at; ++at) {
        if (*at == ',') continue;
        if (*at == 'N') bytes *= num_worlds;
        else if (*at == 'F') bytes *= doorstep::flat_size(agents);
        else if (*at != 'A') bytes *= strtol(at, const_cast<char**>(&at), 10), --at;
        else if (at[1] != '-') bytes *= agents;
        else bytes *= agents - 1, at += 2;
    }
    return bytes;
}

void add_tensors(const doorstep::TensorPointers& tensors, int64_t num_worlds, int num_agents,
                 Accesses& accesses) {
#define STAND_IN_TENSOR(name, dtype, shape, ...)                                                    \
    const int64_t name##_bytes = tensor_bytes(shape, sizeof *tensors.name, num_worlds, num_agents); \
    if (tensors.name && name##_bytes) accesses.add_aligned(#name, tensors.name, name##_bytes, 256);
    DS_TENSOR_TABLE(STAND_IN_TENSOR)
#undef STAND_IN_TENSOR
}

int check_shape(const Launch& launch) {
    const doorstep::KernelShape& shape = doorstep::find_kernel_shape(launch.num_agents);
    if (launch.threads != static_cast<uint32_t>(shape.threads))
        return refuse(kInvalidValue,
                      text("%s: %u threads, it needs %d", launch.kernel.c_str(), launch.threads, shape.threads));
    if (launch.shared_bytes < shape.shared_bytes)
        return refuse(kInvalidValue, text("%s: %u bytes of shared memory, it needs %u", launch.kernel.c_str(),
                                          launch.shared_bytes, shape.shared_bytes));
    return kSuccess;
}

// The result must not depend on the order of the threads.
doorstep::ThreadOrder next_thread_order() {
    static int launches = 0;
    return static_cast<doorstep::ThreadOrder>(launches++ % 3);
}

}  // namespace

int make_launch(const Launch& launch, Task* task) {
    if (const int code = check_shape(launch)) return code;
    const doorstep::EmulatedKernel kernel = doorstep::find_emulated_kernel(launch.num_agents, launch.kernel.c_str());
    if (!kernel) return refuse(kNotFound, "there is no emulation of " + launch.kernel);
    const doorstep::KernelShape& shape = doorstep::find_kernel_shape(launch.num_agents);
    const doorstep::KernelArguments& arguments = launch.arguments;
    task->what = text("%s of %ld worlds", launch.kernel.c_str(), arguments.num_worlds);

    Accesses accesses(launch, task);
    const int64_t num_worlds = arguments.num_worlds;
    accesses.add_aligned("worlds", arguments.simulation.worlds, num_worlds * kWorldBytes[launch.num_agents - 1], 64);
    add_tensors(arguments.simulation.tensors, num_worlds, launch.num_agents, accesses);
    accesses.add("flights", arguments.flights, sizeof(doorstep::FlightTable), false);
    accesses.add("trouble", arguments.trouble, sizeof(uint32_t) * doorstep::kTroubleKinds, true);
    if (shape.workspace_bytes_per_block)
        accesses.add_aligned("workspace", arguments.workspace, launch.grid * shape.workspace_bytes_per_block, 256);
    if (arguments.mask) accesses.add("mask", arguments.mask, num_worlds, false);
    if (arguments.seed_and_offset) accesses.add("seed_and_offset", arguments.seed_and_offset, 8, false);
    task->run = [launch, kernel] {
        const doorstep::DefaultFloatEnvironment device;  // independent of the host's
        kernel(launch.arguments, launch.grid, launch.threads, next_thread_order());
    };
    return accesses.code;
}

}  // namespace stand_in
