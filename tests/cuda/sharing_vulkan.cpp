// A Vulkan loader, libvulkan.so.1, that makes lavapipe share memory and semaphores with the stand-in for the CUDA
// driver. It passes all calls to the loader that SHARING_VULKAN_LOADER names, except:
//   - devices have the UUID of the stand-in's first device, and the extensions for sharing;
//   - memory exported by CUDA, a memory file, is mapped and imported as host memory;
//   - an exported semaphore is also a memory file, which contains its value: a thread keeps both values equal.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "render/vulkan/vulkan.h"

using namespace doorstep;

namespace {

// From VK_EXT_external_memory_host and timeline semaphores, which the library does not use itself.
struct ImportMemoryHostPointerInfo {
    int32_t type = 1000178000;
    const void* next = nullptr;
    uint32_t handle_type = kHostAllocation;
    void* host_pointer = nullptr;
    static constexpr uint32_t kHostAllocation = 0x80;
};
struct SemaphoreSignalInfo {
    int32_t type = 1000207005;
    const void* next = nullptr;
    VkSemaphore semaphore = nullptr;
    uint64_t value = 0;
};
struct ChainLink {
    VkStructureType type;
    const ChainLink* next;
};

LoaderFunctions loader;
InstanceFunctions instance;
DeviceFunctions device;
void (*(*get_device_function)(VkDevice, const char*))() = nullptr;
VkResult (*signal_semaphore)(VkDevice, const SemaphoreSignalInfo*) = nullptr;
VkResult (*semaphore_value)(VkDevice, VkSemaphore, uint64_t*) = nullptr;

const char* const kAdded[] = {"VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd"};

template <class Struct>
const Struct* find(const void* chain, VkStructureType type) {
    for (auto* link = static_cast<const ChainLink*>(chain); link; link = link->next) {
        if (link->type == type) return reinterpret_cast<const Struct*>(link);
    }
    return nullptr;
}

// ---- Devices

void get_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties2* properties) {
    instance.vkGetPhysicalDeviceProperties2(physical, properties);
    const auto* found =
        find<VkPhysicalDeviceIDProperties>(properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
    if (!found) return;
    auto* identity = const_cast<VkPhysicalDeviceIDProperties*>(found);
    for (int i = 0; i < 15; ++i) identity->deviceUUID[i] = static_cast<uint8_t>(i * 0x11);
    identity->deviceUUID[15] = 0;
}

VkResult enumerate_extensions(VkPhysicalDevice, const char*, uint32_t* count, VkExtensionProperties* extensions) {
    for (uint32_t i = 0; i < 2; ++i) strcpy(extensions[i].extensionName, kAdded[i]);
    *count = 2;
    return VK_SUCCESS;
}

VkResult create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info, const VkAllocationCallbacks* none,
                       VkDevice* made) {
    const char* const extensions[] = {"VK_EXT_external_memory_host"};
    VkDeviceCreateInfo changed = *info;
    if (info->enabledExtensionCount != 2) {
        fprintf(stderr, "sharing_vulkan: the extensions for sharing were not asked for\n");
        return VK_ERROR_INITIALIZATION_FAILED;
    }
    changed.enabledExtensionCount = 1;
    changed.ppEnabledExtensionNames = extensions;
    return instance.vkCreateDevice(physical, &changed, none, made);
}

// ---- Memory

std::mutex mutex;
struct Mapping {
    void* host;
    size_t bytes;
};
std::map<VkDeviceMemory, Mapping> mappings;

VkResult create_buffer(VkDevice handle, const VkBufferCreateInfo* info, const VkAllocationCallbacks* none,
                       VkBuffer* buffer) {
    VkBufferCreateInfo changed = *info;
    VkExternalMemoryBufferCreateInfo external;
    external.handleTypes = ImportMemoryHostPointerInfo::kHostAllocation;
    if (info->pNext) changed.pNext = &external;
    return device.vkCreateBuffer(handle, &changed, none, buffer);
}

VkResult allocate_memory(VkDevice handle, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* none,
                         VkDeviceMemory* memory) {
    const auto* given = find<VkImportMemoryFdInfoKHR>(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
    if (!given) return device.vkAllocateMemory(handle, info, none, memory);
    ImportMemoryHostPointerInfo imported;
    imported.host_pointer =
        mmap(nullptr, info->allocationSize, PROT_READ | PROT_WRITE, MAP_SHARED, given->fd, 0);
    if (imported.host_pointer == MAP_FAILED) return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    VkMemoryAllocateInfo changed = *info;
    changed.pNext = &imported;
    const VkResult result = device.vkAllocateMemory(handle, &changed, none, memory);
    if (result != VK_SUCCESS) {
        munmap(imported.host_pointer, info->allocationSize);
        return result;
    }
    close(given->fd);
    const std::lock_guard guard(mutex);
    mappings[*memory] = {imported.host_pointer, info->allocationSize};
    return result;
}

void free_memory(VkDevice handle, VkDeviceMemory memory, const VkAllocationCallbacks* none) {
    device.vkFreeMemory(handle, memory, none);
    const std::lock_guard guard(mutex);
    if (const auto found = mappings.find(memory); found != mappings.end()) {
        munmap(found->second.host, found->second.bytes);
        mappings.erase(found);
    }
}

// ---- Semaphores

struct SharedSemaphore {
    int fd;
    std::atomic<uint64_t>* value;  // CUDA's
    std::atomic<bool> ended{false};
    std::thread thread;
};
std::map<VkSemaphore, SharedSemaphore*> semaphores;

void keep_the_same(VkDevice handle, VkSemaphore semaphore, SharedSemaphore* shared) {
    while (!shared->ended) {
        uint64_t here = 0;
        semaphore_value(handle, semaphore, &here);
        const uint64_t there = shared->value->load();
        if (there > here) {
            SemaphoreSignalInfo info;
            info.semaphore = semaphore;
            info.value = there;
            signal_semaphore(handle, &info);
        } else if (here > there) {
            shared->value->store(here);
        }
        usleep(50);
    }
}

VkResult create_semaphore(VkDevice handle, const VkSemaphoreCreateInfo* info, const VkAllocationCallbacks* none,
                          VkSemaphore* semaphore) {
    VkSemaphoreTypeCreateInfo type =
        *find<VkSemaphoreTypeCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    const bool exported = type.pNext != nullptr;
    type.pNext = nullptr;
    VkSemaphoreCreateInfo changed = *info;
    changed.pNext = &type;
    const VkResult result = device.vkCreateSemaphore(handle, &changed, none, semaphore);
    if (result != VK_SUCCESS || !exported) return result;
    const auto page = static_cast<size_t>(getpagesize());
    auto* shared = new SharedSemaphore;
    shared->fd = memfd_create("timeline-semaphore", MFD_CLOEXEC);
    if (shared->fd < 0 || ftruncate(shared->fd, static_cast<off_t>(page)) != 0) abort();
    shared->value = static_cast<std::atomic<uint64_t>*>(
        mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0));
    shared->thread = std::thread(keep_the_same, handle, *semaphore, shared);
    const std::lock_guard guard(mutex);
    semaphores[*semaphore] = shared;
    return result;
}

VkResult get_semaphore_fd(VkDevice, const VkSemaphoreGetFdInfoKHR* info, int* fd) {
    const std::lock_guard guard(mutex);
    *fd = dup(semaphores.at(info->semaphore)->fd);
    return VK_SUCCESS;
}

void destroy_semaphore(VkDevice handle, VkSemaphore semaphore, const VkAllocationCallbacks* none) {
    {
        const std::lock_guard guard(mutex);
        if (const auto found = semaphores.find(semaphore); found != semaphores.end()) {
            SharedSemaphore* shared = found->second;
            shared->ended = true;
            shared->thread.join();
            munmap(shared->value, static_cast<size_t>(getpagesize()));
            close(shared->fd);
            delete shared;
            semaphores.erase(found);
        }
    }
    device.vkDestroySemaphore(handle, semaphore, none);
}

// ---- Functions by name

using Function = void (*)();

// Stores the real function in `original` and returns a replacement.
template <class Pointer>
Function replaced(Function found, Pointer& original, Pointer replacement) {
    original = reinterpret_cast<Pointer>(found);
    return reinterpret_cast<Function>(replacement);
}

Function device_function(VkDevice handle, const char* name) {
    const Function found = get_device_function(handle, name);
    signal_semaphore = reinterpret_cast<decltype(signal_semaphore)>(get_device_function(handle, "vkSignalSemaphore"));
    semaphore_value =
        reinterpret_cast<decltype(semaphore_value)>(get_device_function(handle, "vkGetSemaphoreCounterValue"));
    if (!strcmp(name, "vkCreateBuffer")) return replaced(found, device.vkCreateBuffer, create_buffer);
    if (!strcmp(name, "vkAllocateMemory")) return replaced(found, device.vkAllocateMemory, allocate_memory);
    if (!strcmp(name, "vkFreeMemory")) return replaced(found, device.vkFreeMemory, free_memory);
    if (!strcmp(name, "vkCreateSemaphore")) return replaced(found, device.vkCreateSemaphore, create_semaphore);
    if (!strcmp(name, "vkDestroySemaphore")) return replaced(found, device.vkDestroySemaphore, destroy_semaphore);
    if (!strcmp(name, "vkGetSemaphoreFdKHR")) return reinterpret_cast<Function>(get_semaphore_fd);
    return found;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Function vkGetInstanceProcAddr(VkInstance handle, const char* name) {
    if (!loader.vkGetInstanceProcAddr) {
        const char* path = getenv("SHARING_VULKAN_LOADER");
        void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
        if (!library) return nullptr;
        loader.vkGetInstanceProcAddr = reinterpret_cast<decltype(loader.vkGetInstanceProcAddr)>(
            dlsym(library, "vkGetInstanceProcAddr"));
    }
    const Function found = loader.vkGetInstanceProcAddr(handle, name);
    if (!strcmp(name, "vkGetPhysicalDeviceProperties2")) {
        return replaced(found, instance.vkGetPhysicalDeviceProperties2, get_properties);
    }
    if (!strcmp(name, "vkCreateDevice")) return replaced(found, instance.vkCreateDevice, create_device);
    if (!strcmp(name, "vkEnumerateDeviceExtensionProperties")) return reinterpret_cast<Function>(enumerate_extensions);
    if (!strcmp(name, "vkGetDeviceProcAddr")) return replaced(found, get_device_function, device_function);
    return found;
}
