// An array on the heap whose size is fixed when its memory is taken.
#pragma once

#include <memory>
#include <new>

#include "runtime/memory.h"

namespace doorstep {

template <class Item>
class Array {
public:
    // Zeroed items. False if memory ran out.
    bool take(int64_t size) {
        DS_ASSERT(!items_ && size >= 0);
        if (!has_memory_for(size * static_cast<int64_t>(sizeof(Item)))) return false;
        items_.reset(new (std::nothrow) Item[static_cast<size_t>(size)]());
        size_ = items_ ? size : 0;
        return static_cast<bool>(items_);
    }

    int64_t size() const { return size_; }
    Item* data() const { return items_.get(); }
    Item* begin() const { return data(); }
    Item* end() const { return data() + size_; }
    Item& operator[](int64_t place) const {
        DS_ASSERT(place >= 0 && place < size_);
        return items_.get()[place];
    }

private:
    std::unique_ptr<Item[]> items_;
    int64_t size_ = 0;
};

}  // namespace doorstep
