// Memory and semaphores that are shared with another API of the process, such as Vulkan, by file descriptors.
#pragma once

#include "runtime/cuda/stream.h"
#include "runtime/futex.h"
#include "runtime/status.h"

namespace doorstep {

// ---- File descriptors ----

// A duplicate of a caller's file descriptor. APIs that take descriptors over get the duplicate and keep it only on
// success, so that a failure leaves the caller's descriptor as it was.
class FileDescriptorCopy {
public:
    explicit FileDescriptorCopy(int original);
    ~FileDescriptorCopy();
    FileDescriptorCopy(const FileDescriptorCopy&) = delete;
    FileDescriptorCopy& operator=(const FileDescriptorCopy&) = delete;

    // INVALID_ARGUMENT, with the thread's error set, if the original is not open.
    ds_status status() const { return status_; }
    int get() const { return descriptor_; }
    // Another API owns the duplicate now.
    void give_away() { descriptor_ = -1; }

private:
    int descriptor_;
    ds_status status_ = DS_STATUS_OK;
};

// ---- Exported memory ----

// Device memory that another API of the process, such as Vulkan, can import through a file descriptor.
class ExportedMemory final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_EXPORTED_MEMORY;

    // At least `bytes`, rounded up to the device's granularity; contents are undefined. The memory is freed after the
    // work of the stream (see Stream::finish()); importers keep the bytes. Null, with the thread's error set, on
    // failure: OUT_OF_MEMORY with the amounts, DEVICE if the device cannot export memory.
    static Ref<ExportedMemory> create(Ref<Stream> stream, uint64_t bytes);
    ~ExportedMemory();

    CUdeviceptr address() const { return address_; }
    uint64_t bytes() const override { return bytes_; }

    // A new file descriptor, which the caller owns. It is closed when the process executes another program.
    ds_status export_descriptor(int* descriptor) const;

private:
    explicit ExportedMemory(Ref<Stream> stream) : Resource(kKind, stream->context()), stream_(std::move(stream)) {}
    ds_status take(uint64_t bytes);
    void give_back();

    const Ref<Stream> stream_;
    uint64_t bytes_ = 0;
    CUmemGenericAllocationHandle allocation_ = 0;
    CUdeviceptr address_ = 0;
    bool mapped_ = false;
};

// ---- Imported memory ----

// Memory that another API of the process, such as Vulkan, has allocated and exported as a file descriptor.
class ImportedMemory final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_IMPORTED_MEMORY;

    // Imports the memory of a file descriptor (VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT), which stays the caller's.
    // bytes: its size in the other API. dedicated: whether it was allocated for a single buffer or image. The memory is
    // released after the work of the stream (see Stream::finish()). Null, with the thread's error set, on failure.
    static Ref<ImportedMemory> create(Ref<Stream> stream, int descriptor, uint64_t bytes, bool dedicated);
    ~ImportedMemory();

    CUdeviceptr address() const { return address_; }
    uint64_t bytes() const override { return bytes_; }

private:
    ImportedMemory(Ref<Stream> stream, uint64_t bytes)
        : Resource(kKind, stream->context()), stream_(std::move(stream)), bytes_(bytes) {}
    ds_status import(int descriptor, bool dedicated);
    ds_status map();
    void give_back();

    const Ref<Stream> stream_;
    const uint64_t bytes_;
    CUexternalMemory memory_ = nullptr;
    CUdeviceptr address_ = 0;
};

// ---- Semaphores ----

// A semaphore of another API of the process, such as Vulkan: it orders that API's work and the work of streams.
class Semaphore final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_SEMAPHORE;

    // Imports the semaphore of a file descriptor (VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT), which stays the
    // caller's. Null, with the thread's error set, on failure; DEVICE if the device does not support timeline
    // semaphores.
    static Ref<Semaphore> import(Ref<Context> context, int descriptor, bool timeline);
    // Leaked if work that uses it has not ended after kReleasePatience, or may be launched again.
    ~Semaphore();

    CUexternalSemaphore handle() const { return reinterpret_cast<CUexternalSemaphore>(raw()); }
    bool is_timeline() const { return timeline_; }

    // In the order of the stream. value: the value that a timeline is set to or must reach; 0 for a binary semaphore.
    // An error of cuEventRecord is returned after the work was begun.
    ds_status signal(const Stream& stream, uint64_t value);
    ds_status wait(const Stream& stream, uint64_t value);

private:
    // The latest work that uses it on one stream, by the event after it.
    struct Use {
        Ref<Event> event;
        uint64_t stream;
        Use* next;
    };

    Semaphore(Ref<Context> context, bool timeline) : Resource(kKind, std::move(context)), timeline_(timeline) {}
    template <class Call>
    ds_status begin(const Stream& stream, const char* function, const Call& call);
    ds_status find_use(const Stream& stream, Use** use);
    bool is_at_rest() const;

    const bool timeline_;
    Mutex mutex_;  // guards the following
    Use* uses_ = nullptr;
    bool unknown_uses_ = false;  // in graphs, or without an event after it
};

}  // namespace doorstep
