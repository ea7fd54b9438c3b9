// Work given to the device, done as late as the rules allow: an operation runs only when somebody waits for it, or for
// one that must come after it. Whoever forgets to wait, or to order two streams, sees what was there before.
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

// Bytes that an operation touches.
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
    std::vector<OperationRef> after;  // those not done yet
    std::vector<Access> accesses;
    std::function<void()> run;        // may be empty
    std::function<bool()> ready;      // whether it can run, whatever came before; empty: always
    bool done = false;
    int64_t time = 0;                 // place in the order in which operations ran
    bool freeing = false;             // ends its allocation
};

// Runs an operation, and before it all that must come before. Where one of these waits for somebody else, all streams
// go on, and so do the callers of other threads. Driver's lock held, once.
void execute(const OperationRef& operation);

// Runs one operation: the earliest that `operation` needs, or itself; one of another stream if these wait for somebody
// else. For those who only ask.
void advance(const OperationRef& operation);

// Whether `earlier` is done, or certain to be done before `later` begins.
bool comes_before(const OperationRef& earlier, const OperationRef& later);

// Operations that were given to the device and have not run.
void count_begun_operation();
int64_t pending_operations();

// Checks the accesses of a new operation against those of earlier ones, and remembers them.
void note_accesses(const OperationRef& operation);

}  // namespace stand_in
