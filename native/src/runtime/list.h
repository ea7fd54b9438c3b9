// A list of existing objects that contain its links: it allocates nothing, has no destructor and keeps no object alive.
// The code that owns it guards it with a lock.
#pragma once

namespace doorstep {

// T has a public member `T* next_listed`, which belongs to the list.
template <class T>
class List {
public:
    void insert(T* item) {
        item->next_listed = first_;
        first_ = item;
    }

    // False if the item is not in the list.
    bool remove(const T* item) {
        T** link = &first_;
        while (*link && *link != item) link = &(*link)->next_listed;
        if (!*link) return false;
        *link = item->next_listed;
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
