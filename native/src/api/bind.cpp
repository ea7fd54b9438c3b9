// Tensors bound or redirected to the caller's memory, and tensors set from it.
#include <initializer_list>

#include "api/call.h"

namespace doorstep {
namespace {

// The bindings of one call. Before carry_out() only the elements of the caller's memory have changed; the destructor
// releases the rest.
class Bindings {
public:
    Bindings(Simulator& simulator, const ds_binding* bindings, int count)
        : simulator_(simulator), bindings_(bindings), count_(count) {}
    ~Bindings() {
        for (int i = 0; i < count_; ++i) {
            if (moves_[i].handle) memories.remove(moves_[i].handle, "memories");
        }
    }

    // A step of the call with every binding, until one fails.
    ds_status each(ds_status (Bindings::*step)(int i)) {
        for (int i = 0; i < count_; ++i) {
            if (const ds_status status = (this->*step)(i)) return status;
        }
        return DS_STATUS_OK;
    }
    ds_status check(int i);
    ds_status borrow(int i);
    ds_status check_place(int i);
    ds_status make_handle(int i);
    ds_status copy_elements(int i);
    // Cannot fail. replaced: count memories, to be released without holding the simulator's turn.
    void carry_out(Ref<Memory>* replaced);
    // Gives the caller the handles that were made.
    void give_handles(ds_memory* handles);

private:
    struct Move {
        ds_tensor_info info;   // the tensor's current place
        Ref<Memory> borrowed;  // the caller's memory; null: the simulator's own
        ds_memory handle = 0;
    };

    int tensor(int i) const { return static_cast<int>(bindings_[i].tensor); }
    const char* name(int i) const { return kTensorRows[tensor(i)].name; }
    Simulator& simulator_;
    const ds_binding* bindings_;
    int count_;
    Move moves_[DS_TENSOR_COUNT];
};

ds_status Bindings::check(int i) {
    const ds_binding& binding = bindings_[i];
    if (const ds_status status = check_tensor(simulator_, binding.tensor)) return status;
    for (int k = 0; k < i; ++k) {
        if (bindings_[k].tensor != binding.tensor) continue;
        return fail(DS_STATUS_INVALID_ARGUMENT, name(i), "bind each tensor at most once", "%s occurs twice", name(i));
    }
    ds_tensor_info& info = moves_[i].info;
    simulator_.describe_tensor(tensor(i), &info);
    if (!binding.data) return DS_STATUS_OK;
    if (binding.bytes != static_cast<uint64_t>(tensor_bytes(info))) {
        return fail(DS_STATUS_INVALID_ARGUMENT, name(i), "bind memory of exactly the tensor's size",
                    "%s is bound to %lu bytes; it must be %ld", name(i), binding.bytes, tensor_bytes(info));
    }
    if (reinterpret_cast<uintptr_t>(binding.data) % static_cast<uintptr_t>(dtype_bytes(info.dtype)) != 0) {
        return fail(DS_STATUS_INVALID_ARGUMENT, name(i), "bind memory that is aligned to its elements",
                    "%s is bound to the address %p; it must be a multiple of %ld", name(i), binding.data,
                    dtype_bytes(info.dtype));
    }
    return DS_STATUS_OK;
}

ds_status Bindings::borrow(int i) {
    const ds_binding& binding = bindings_[i];
    if (!binding.data || binding.bytes == 0) return DS_STATUS_OK;
    return simulator_.borrow(static_cast<char*>(binding.data), static_cast<int64_t>(binding.bytes), &moves_[i].borrowed);
}

// Two tensors in the same memory would overwrite each other, already while their elements are copied there.
ds_status Bindings::check_place(int i) {
    if (!moves_[i].borrowed) return DS_STATUS_OK;
    const Memory& place = *moves_[i].borrowed;
    const auto check_apart = [&](const Memory& other, const char* what) {
        if (!other.overlaps(place.data(), place.bytes())) return DS_STATUS_OK;
        return fail(DS_STATUS_INVALID_ARGUMENT, name(i), "bind memory that this simulator uses for nothing else",
                    "%s is bound to memory that overlaps that of %s", name(i), what);
    };
    if (const ds_status status = check_apart(*simulator_.memory(), "the simulator itself")) return status;
    for (int other = 0; other < DS_TENSOR_COUNT; ++other) {
        const Memory& now = *simulator_.memory_of(other);
        if (now.has_moved()) continue;  // that memory may be free
        if (other == tensor(i) && now.data() == place.data()) continue;  // bound to the same memory as before
        if (const ds_status status = check_apart(now, kTensorRows[other].name)) return status;
    }
    for (int k = 0; k < i; ++k) {
        if (!moves_[k].borrowed) continue;
        if (const ds_status status = check_apart(*moves_[k].borrowed, name(k))) return status;
    }
    return DS_STATUS_OK;
}

ds_status Bindings::make_handle(int i) {
    return give_memory(moves_[i].borrowed ? moves_[i].borrowed : simulator_.memory(), &moves_[i].handle);
}

ds_status Bindings::copy_elements(int i) {
    const Move& move = moves_[i];
    void* to = move.borrowed ? move.borrowed->data() : simulator_.own_address(tensor(i));
    if (to == move.info.data || simulator_.memory_of(tensor(i))->has_moved()) return DS_STATUS_OK;
    return simulator_.copy_now(to, move.info.data, tensor_bytes(move.info));
}

void Bindings::carry_out(Ref<Memory>* replaced) {
    for (int i = 0; i < count_; ++i) {
        Move& move = moves_[i];
        const ForeignOwner owner = {bindings_[i].owner, bindings_[i].release_owner};
        replaced[i] = simulator_.bind(tensor(i), move.borrowed);
        if (move.borrowed) move.borrowed->take_over(owner);
    }
}

void Bindings::give_handles(ds_memory* handles) {
    for (int i = 0; i < count_; ++i) handles[i] = std::exchange(moves_[i].handle, 0);
}

ds_status bind_all(Simulator& simulator, const ds_binding* bindings, int count, ds_memory* handles,
                   Ref<Memory>* replaced) {
    Bindings all(simulator, bindings, count);
    const auto steps = {&Bindings::check, &Bindings::borrow, &Bindings::check_place, &Bindings::make_handle,
                        &Bindings::copy_elements};
    for (const auto step : steps) {
        if (const ds_status status = all.each(step)) return status;
    }
    all.carry_out(replaced);
    all.give_handles(handles);
    return DS_STATUS_OK;
}

ds_status check_redirectable(const Simulator& simulator, int64_t tensor) {
    if (const ds_status status = check_tensor(simulator, tensor)) return status;
    const TensorRow& row = kTensorRows[tensor];
    if (row.outlives_step || row.saved) {
        return fail(DS_STATUS_INVALID_ARGUMENT, row.name, "bind it, which copies its elements",
                    "%s has elements that the next step reads or keeps; only what every step writes anew is redirected",
                    row.name);
    }
    if (simulator.config().device_kind == DS_DEVICE_CPU) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "simulator", "bind the tensor, which copies its elements",
                "%s is a tensor on a GPU; only those on the CPU are redirected", row.name);
}

ds_status redirect(Simulator& simulator, const ds_binding& binding, Ref<Memory>* replaced) {
    if (const ds_status status = check_redirectable(simulator, binding.tensor)) return status;
    Bindings one(simulator, &binding, 1);
    for (const auto step : {&Bindings::check, &Bindings::borrow, &Bindings::check_place}) {
        if (const ds_status status = one.each(step)) return status;
    }
    one.carry_out(replaced);
    return DS_STATUS_OK;
}

// For tensors that return to the simulator's own memory: there is no owner to keep.
void release_idle_owners(const ds_binding* bindings, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
        const ds_binding& binding = bindings[i];
        if (binding.release_owner && (!binding.data || binding.bytes == 0)) binding.release_owner(binding.owner);
    }
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_simulator_bind(ds_simulator simulator, const ds_binding* bindings, uint64_t count,
                            ds_memory* memories_of_tensors) {
    if (count == 0) return DS_STATUS_OK;
    if (!bindings) return fail_null("bindings");
    if (!memories_of_tensors) return fail_null("memories");
    if (count > DS_TENSOR_COUNT) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "count", "bind each tensor at most once",
                    "count is %lu; it must be 0 to %d", count, DS_TENSOR_COUNT);
    }
    Ref<Memory> replaced[DS_TENSOR_COUNT];
    {
        SimulatorCall call(simulator);
        if (const ds_status status = call.begin_binding()) return status;
        const ds_status status = bind_all(*call, bindings, static_cast<int>(count), memories_of_tensors, replaced);
        if (status) return status;
    }
    release_idle_owners(bindings, count);
    return DS_STATUS_OK;
}

ds_status ds_simulator_redirect(ds_simulator simulator, const ds_binding* binding) {
    if (!binding) return fail_null("binding");
    Ref<Memory> replaced;
    {
        SimulatorCall call(simulator);
        if (const ds_status status = call.status()) return status;
        if (const ds_status status = redirect(*call, *binding, &replaced)) return status;
    }
    release_idle_owners(binding, 1);
    return DS_STATUS_OK;
}

ds_status ds_simulator_watch(ds_simulator simulator, int32_t tensor, const uint64_t* first, const uint64_t* second) {
    SimulatorCall call(simulator);
    if (const ds_status status = call.status()) return status;
    if (const ds_status status = check_tensor(*call, tensor)) return status;
    if (call->memory_of(tensor).get() == call->memory().get()) {
        return fail(DS_STATUS_INVALID_ARGUMENT, kTensorRows[tensor].name, "bind it before",
                    "%s is not bound to memory of the caller", kTensorRows[tensor].name);
    }
    call->watch(tensor, first, second);
    return DS_STATUS_OK;
}

ds_status ds_memory_check(ds_memory memory) {
    const Ref<Memory> found = memories.find(memory, "memory");
    return found ? found->check() : last_status();
}

ds_status ds_simulator_set_tensor(ds_simulator simulator, int32_t tensor, const void* data, uint64_t bytes,
                                  int32_t device_kind) {
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_work()) return status;
    if (const ds_status status = check_tensor(*call, tensor)) return status;
    const TensorRow& row = kTensorRows[tensor];
    if (row.access != DS_ACCESS_READ_WRITE) {
        return fail(DS_STATUS_INVALID_ARGUMENT, row.name, "set actions or resets",
                    "only the simulator writes %s", row.name);
    }
    ds_tensor_info info;
    call->describe_tensor(tensor, &info);
    const int64_t expected = tensor_bytes(info);
    if (bytes != static_cast<uint64_t>(expected)) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "bytes", "pass the number of bytes of all elements",
                    "bytes is %lu; it must be %ld", bytes, expected);
    }
    if (!data) return fail_null("data");
    if (data == info.data) return DS_STATUS_OK;
    const bool on_device = device_kind == call->config().device_kind;
    if (!on_device && device_kind != DS_DEVICE_CPU) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "device_kind", "pass DS_DEVICE_CPU for host memory",
                    "device_kind is %d; it must be the simulator's or DS_DEVICE_CPU", device_kind);
    }
    return on_device ? call->copy(info.data, data, expected)
                     : call->memory_of(tensor)->write(info.data, expected, data);
}
