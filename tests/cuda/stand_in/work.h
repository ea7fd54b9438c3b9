// Device work, executed as late as the rules allow: an operation runs only when a caller waits for it, or for a later
// one that depends on it. Code that forgets to wait, or to order two streams, sees the old contents.
#pragma once

#include <stdint.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stand_in {

struct Allocation;
struct Operation;
using OperationRef = std::shared_ptr<Operation>;

// Bytes that an operation accesses.
struct Access {
    std::shared_ptr<Allocation> allocation;
    uint64_t first, last;  // offsets, last excluded
    bool writes;

    bool conflicts_with(const Access& other) const {
        return (writes || other.writes) && first < other.last && other.first < last;
    }
};

struct Operation {
    std::string what;
    std::vector<OperationRef> after;  // unfinished operations that it waits for
    std::vector<Access> accesses;
    std::function<void()> run;        // may be empty
    std::function<bool()> ready;      // whether it can run in its turn; empty: always
    bool done = false;
    int64_t time = 0;                 // index in the order in which operations ran
    bool freeing = false;             // ends its allocation
};

// Runs an operation, after all operations that must come before. While one of these waits for another API, all streams
// continue, and so do callers in other threads. The driver's lock is held, once.
void execute(const OperationRef& operation);

// Runs one operation: the earliest that `operation` needs, or itself; one of another stream if these wait for another
// API. For callers that only poll.
void advance(const OperationRef& operation);

// Whether `earlier` has ended, or will certainly end before `later` begins.
bool comes_before(const OperationRef& earlier, const OperationRef& later);

// Operations that have been begun and have not run.
void count_begun_operation();
int64_t pending_operations();

// Checks the accesses of a new operation against those of earlier ones, and records them.
void note_accesses(const OperationRef& operation);

}  // namespace stand_in
