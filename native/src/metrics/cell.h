// Numbers that one thread at a time writes while others read them.
#pragma once

#include <atomic>

namespace doorstep {

// Writers take turns by a lock of their own, see Series::open_writer(). Writing costs what it costs on a plain number.
template <class Value>
class Cell {
public:
    Value get() const { return value_.load(std::memory_order_relaxed); }
    void set(Value value) { value_.store(value, std::memory_order_relaxed); }
    void add(Value more) { set(get() + more); }

private:
    std::atomic<Value> value_{};
};

}  // namespace doorstep
