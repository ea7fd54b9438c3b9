#include "rollouts/row_desk.h"

#include <string.h>

#include <new>
#include <utility>

#include "runtime/status.h"

namespace doorstep {

// ---- Rows ----

namespace {

constexpr int64_t kBytesOfActions = DS_ACTION_COMPONENT_COUNT * sizeof(int32_t);

// Of a row in all arrays.
int64_t row_bytes(int64_t num_inputs) {
    constexpr int64_t kWide = sizeof(int64_t) + sizeof(uint64_t);
    constexpr int64_t kNarrow = sizeof(int32_t) + 2 * sizeof(uint32_t) + sizeof(float);
    return kWide + kNarrow + kBytesOfActions + num_inputs * static_cast<int64_t>(sizeof(float));
}

}  // namespace

Ref<AskedRows> AskedRows::create(const Ref<RequestTable>& table, int64_t num_rows, int64_t num_inputs) {
    Ref<OutputMemory> memory = OutputMemory::make(num_rows * row_bytes(num_inputs));
    if (!memory) return {};
    return Ref<AskedRows>::adopt(new (std::nothrow) AskedRows(table, num_rows, num_inputs, std::move(memory)));
}

AskedRows::AskedRows(const Ref<RequestTable>& table, int64_t num_rows, int64_t num_inputs, Ref<OutputMemory> given)
    : num_rows(num_rows), num_inputs(num_inputs), memory(std::move(given)), table_(table) {
    char* next = memory->data();
    const auto take = [&](auto** array, int64_t values) {
        *array = reinterpret_cast<std::remove_reference_t<decltype(*array)>>(next);
        next += values * static_cast<int64_t>(sizeof **array);
    };
    take(&steps, num_rows);  // the wide ones first: all are aligned
    take(&tags, num_rows);
    take(&rows, num_rows);
    take(&keys, 2 * num_rows);
    take(&rewards, num_rows);
    take(&actions_, DS_ACTION_COMPONENT_COUNT * num_rows);
    take(&observations, num_rows * num_inputs);
    DS_ASSERT(next == memory->data() + memory->bytes());
}

// ---- The desk ----

template <class Matches>
Ref<AskedRows>* RowDesk::find(const Matches& matches) {
    Ref<AskedRows>* link = &first_;
    while (*link && !matches(**link)) link = &(*link)->next_;
    return link;
}

void RowDesk::ask(const Ref<AskedRows>& rows) {
    {
        MutexGuard guard(mutex_);
        DS_ASSERT(rows->id_ == 0 && !rows->is_taken_ && !rows->next_ && !rows->have_returned());
        rows->id_ = next_id_++;
        *find([](const AskedRows&) { return false; }) = rows;
    }
    changes_.tell();
}

void RowDesk::withdraw(const Ref<AskedRows>& rows) {
    MutexGuard guard(mutex_);
    Ref<AskedRows>* link = find([&](const AskedRows& other) { return &other == rows.get(); });
    if (*link) *link = std::exchange(rows->next_, {});
}

ds_status RowDesk::take(int64_t timeout_ns, Ref<AskedRows>* rows, uint64_t* id) {
    const TimeLimit limit(timeout_ns);
    for (;;) {
        const uint32_t before = changes_.now();
        {
            MutexGuard guard(mutex_);
            Ref<AskedRows>* link = find([](const AskedRows& one) { return !one.is_taken_; });
            if (*link) {
                DS_ASSERT((*link)->id_ > 0 && !(*link)->have_returned());
                *rows = *link;
                *id = (*rows)->id_;
                (*rows)->is_taken_ = true;
                return DS_STATUS_OK;
            }
            if (closed_) return fail(DS_STATUS_CLOSED, "engine", "make a new engine", "the engine has ended");
        }
        const int64_t left = limit.left_ns();
        if (left == 0) return DS_STATUS_PENDING;
        changes_.wait(before, left);
    }
}

ds_status RowDesk::give_back(uint64_t id, const int32_t* actions, int64_t cause) {
    Ref<AskedRows> rows;
    {
        MutexGuard guard(mutex_);
        Ref<AskedRows>* link = find([&](const AskedRows& one) { return one.is_taken_ && one.id_ == id; });
        if (!*link) {
            return fail(DS_STATUS_CLOSED, "id", "return rows once, and before the engine has ended",
                        "rows %lu are not awaited", id);
        }
        rows = *link;
        *link = std::exchange(rows->next_, {});
        DS_ASSERT(!rows->have_returned() && !rows->next_);
    }
    if (cause == 0) memcpy(rows->actions_, actions, static_cast<size_t>(rows->num_rows * kBytesOfActions));
    rows->cause_ = cause;
    rows->returned_.store(true, std::memory_order_release);
    rows->table_->arrivals.tell();
    return DS_STATUS_OK;
}

void RowDesk::close() {
    {
        MutexGuard guard(mutex_);
        closed_ = true;
    }
    changes_.tell();
}

}  // namespace doorstep
