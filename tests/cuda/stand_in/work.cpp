#include <unistd.h>

#include <set>

#include "driver.h"

namespace stand_in {
namespace {

int64_t operations_begun = 0, operations_run = 0;

// An unfinished operation that `operation` waits for, or null.
Operation* next_undone(Operation* operation) {
    while (!operation->after.empty() && operation->after.back()->done) operation->after.pop_back();
    return operation->after.empty() ? nullptr : operation->after.back().get();
}

bool is_ready(const Operation& operation) { return !operation.ready || operation.ready(); }

// The first that `is_wanted`, of an operation and the unfinished ones that it waits for; or null.
Operation* find_before(Operation* operation, const auto& is_wanted) {
    std::set<Operation*> seen{operation};
    std::vector<Operation*> open{operation};
    while (!open.empty()) {
        Operation* current = open.back();
        open.pop_back();
        if (is_wanted(current)) return current;
        for (const OperationRef& before : current->after)
            if (!before->done && seen.insert(before.get()).second) open.push_back(before.get());
    }
    return nullptr;
}

// An operation that can run now and that `operation` waits for, or itself; null if all wait for other threads or APIs.
Operation* find_ready(Operation* operation) {
    return find_before(operation, [](Operation* one) { return !next_undone(one) && is_ready(*one); });
}

void run_alone(Operation& operation);

// Runs an operation of any stream; false if all wait for other threads or APIs.
bool advance_any() {
    for (const OperationRef& end : unfinished_ends())
        if (Operation* next = find_ready(end.get())) return run_alone(*next), true;
    return false;
}

constexpr int kPatience = 10'000;  // milliseconds

// Waits until an operation can run, or another thread has run it.
void wait_until_ready(Operation& operation) {
    for (int waited = 0; !operation.done && !is_ready(operation);) {
        if (advance_any()) continue;
        if (++waited > kPatience) {
            driver().report.violation(operation.what + " waits for ever");
            operation.ready = nullptr;
        }
        driver().mutex.unlock();
        usleep(1000);
        driver().mutex.lock();
    }
}

void run_alone(Operation& operation) {
    bool possible = true;
    for (const Access& access : operation.accesses) possible &= check_alive(operation, access);
    if (operation.run && possible) {
        OpenMemory open(operation.accesses);
        operation.run();
    }
    operation.done = true;
    operation.time = ++operations_run;
    operation.run = nullptr;
    operation.ready = nullptr;
    operation.accesses.clear();
}

}  // namespace

void execute(const OperationRef& operation) {
    std::vector<OperationRef> waiting{operation};
    while (!waiting.empty()) {
        const OperationRef current = waiting.back();
        if (current->done) {
            waiting.pop_back();
        } else if (next_undone(current.get())) {
            waiting.push_back(current->after.back());
        } else if (!is_ready(*current)) {
            wait_until_ready(*current);
        } else {
            run_alone(*current);
            waiting.pop_back();
        }
    }
}

void advance(const OperationRef& operation) {
    if (operation->done) return;
    if (Operation* next = find_ready(operation.get())) run_alone(*next);
    else advance_any();
}

void count_begun_operation() { ++operations_begun; }
int64_t pending_operations() { return operations_begun - operations_run; }

bool comes_before(const OperationRef& earlier, const OperationRef& later) {
    return earlier->done || find_before(later.get(), [&](Operation* one) { return one == earlier.get(); });
}

void note_accesses(const OperationRef& operation) {
    for (const Access& access : operation->accesses) {
        if (access.allocation->freeing && !operation->freeing)
            driver().report.violation(operation->what + " uses memory that was freed");
        std::vector<NotedAccess>& noted = access.allocation->accesses;
        std::erase_if(noted, [](const NotedAccess& other) { return other.operation->done; });
        for (const NotedAccess& other : noted) {
            if (other.operation == operation || !access.conflicts_with(other.access)) continue;
            if (comes_before(other.operation, operation)) continue;
            driver().report.violation(operation->what + (operation->freeing ? " frees memory that " : " races with ") +
                                      other.operation->what + (operation->freeing ? " still uses" : ""));
        }
        // Operations after this one are also after all that it waits for
        if (access.writes)
            std::erase_if(noted, [&](const NotedAccess& other) {
                return other.access.first >= access.first && other.access.last <= access.last;
            });
        noted.push_back({operation, {nullptr, access.first, access.last, access.writes}});
    }
}

}  // namespace stand_in
