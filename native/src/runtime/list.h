// A list of existing objects that contain its links: it allocates nothing, has no destructor and keeps no object alive.
// The code that owns it guards it with a lock.
#pragma once

namespace doorstep {

// T has public members `T* next_listed` and `T* previous_listed`, null at first, which belong to the list.
template <class T>
class List {
public:
    void insert(T* item) {
        item->next_listed = first_;
        item->previous_listed = nullptr;
        if (first_) first_->previous_listed = item;
        first_ = item;
    }

    // False if the item is not in the list.
    bool remove(T* item) {
        if (item != first_ && !item->previous_listed) return false;
        (item->previous_listed ? item->previous_listed->next_listed : first_) = item->next_listed;
        if (item->next_listed) item->next_listed->previous_listed = item->previous_listed;
        item->next_listed = item->previous_listed = nullptr;
        return true;
    }

    // The latest item for which matches(item) is true; null without one.
    template <class Matches>
    T* find(const Matches& matches) const {
        T* item = first_;
        while (item && !matches(*item)) item = item->next_listed;
        return item;
    }

    template <class Function>
    void for_each(const Function& function) const {
        for (T* item = first_; item; item = item->next_listed) function(*item);
    }

private:
    T* first_ = nullptr;
};

}  // namespace doorstep
