#include "runtime/handles.h"

#include <pthread.h>
#include <string.h>

#include "check.h"

#if defined(DS_WITH_ASSERTS) && defined(NDEBUG)
#error "assertions were asked for, and the compiler leaves them out"
#endif

namespace {

using namespace doorstep;

// Registries are never destroyed: they are static here, as in the library.

struct Counted : RefCounted {
    explicit Counted(int* alive) : alive_(alive) { ++*alive_; }
    ~Counted() { --*alive_; }
    int* alive_;
};

Ref<Counted> make(int* alive) { return Ref<Counted>::adopt(new Counted(alive)); }

void a_handle_finds_its_object_until_it_is_removed() {
    int alive = 0;
    static HandleRegistry<Counted> registry{HandleKind::SIMULATOR};
    const uint64_t id = registry.insert(make(&alive));
    CHECK(id != 0);
    CHECK(registry.find(id, "one"));
    CHECK_EQUAL(registry.size(), 1);
    CHECK(registry.remove(id, "one"));
    CHECK_EQUAL(alive, 0);
    CHECK(!registry.find(id, "one"));
    CHECK(!registry.remove(id, "one"));
    CHECK_EQUAL(registry.size(), 0);
}

void a_stale_handle_does_not_find_the_next_object_in_its_slot() {
    int alive = 0;
    static HandleRegistry<Counted> registry{HandleKind::SIMULATOR};
    const uint64_t old_id = registry.insert(make(&alive));
    registry.remove(old_id, "one");
    const uint64_t new_id = registry.insert(make(&alive));
    CHECK_EQUAL(static_cast<uint32_t>(new_id), static_cast<uint32_t>(old_id));
    CHECK(!registry.find(old_id, "one"));
    CHECK(registry.find(new_id, "one"));
    registry.remove(new_id, "one");
}

void null_and_invented_handles_find_nothing() {
    int alive = 0;
    static HandleRegistry<Counted> registry{HandleKind::SIMULATOR};
    CHECK(!registry.find(0, "one"));
    const uint64_t id = registry.insert(make(&alive));
    CHECK(!registry.find(0, "one"));
    CHECK(!registry.find(id + 1, "one"));
    CHECK(!registry.find(id + (uint64_t{1} << 32), "one"));
    CHECK(!registry.find(UINT64_MAX, "one"));
    registry.remove(id, "one");
}

void an_object_in_use_outlives_its_handle() {
    int alive = 0;
    static HandleRegistry<Counted> registry{HandleKind::SIMULATOR};
    const uint64_t id = registry.insert(make(&alive));
    {
        const Ref<Counted> used = registry.find(id, "one");
        registry.remove(id, "one");
        CHECK_EQUAL(alive, 1);
    }
    CHECK_EQUAL(alive, 0);
}

void a_registry_grows_to_many_objects() {
    int alive = 0;
    static HandleRegistry<Counted> registry{HandleKind::SIMULATOR};
    uint64_t ids[1000];
    for (uint64_t& id : ids) id = registry.insert(make(&alive));
    CHECK_EQUAL(alive, 1000);
    for (const uint64_t id : ids) CHECK(registry.find(id, "one"));
    for (const uint64_t id : ids) registry.remove(id, "one");
    CHECK_EQUAL(alive, 0);
}

void a_handle_says_what_it_refers_to() {
    int alive = 0;
    static HandleRegistry<Counted> simulators{HandleKind::SIMULATOR}, policies{HandleKind::POLICY};
    const uint64_t simulator = simulators.insert(make(&alive)), policy = policies.insert(make(&alive));
    CHECK_EQUAL(static_cast<uint32_t>(simulator), static_cast<uint32_t>(policy));
    CHECK(!simulators.find(policy, "world"));
    CHECK_EQUAL(last_status(), DS_STATUS_INVALID_ARGUMENT);
    CHECK(strcmp(last_failure().argument, "world") == 0);
    CHECK(strcmp(last_failure().message, "world is the handle of a policy; it must be that of a simulator") == 0);
    CHECK_EQUAL(policies.release(simulator, "one"), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(alive, 2);
    CHECK_EQUAL(policies.release(policy, "one"), DS_STATUS_OK);
    CHECK_EQUAL(policies.release(policy, "one"), DS_STATUS_CLOSED);
    CHECK_EQUAL(simulators.release(simulator, "one"), DS_STATUS_OK);
    CHECK_EQUAL(alive, 0);
}

struct Searching : RefCounted {
    ~Searching() { found = static_cast<bool>(Ref<Searching>::share_if_alive(this)); }
    static inline bool found = true;
};

void an_object_that_is_being_destroyed_cannot_be_shared_again() {
    Ref<Searching> object = Ref<Searching>::adopt(new Searching);
    CHECK(Ref<Searching>::share_if_alive(object.get()));
    object = {};
    CHECK(!Searching::found);
}

struct Atomic : RefCounted {
    std::atomic<int> uses{0};
};

HandleRegistry<Atomic> shared_registry{HandleKind::SIMULATOR};
std::atomic<uint64_t> shared_id{0};

void* use_shared_handle(void*) {
    for (int i = 0; i < 20'000; ++i) {
        const Ref<Atomic> found = shared_registry.find(shared_id.load(), "one");
        if (found) found->uses.fetch_add(1);
    }
    return nullptr;
}

void threads_may_close_and_use_a_handle_at_once() {
    pthread_t threads[3];
    for (pthread_t& thread : threads) CHECK_EQUAL(pthread_create(&thread, nullptr, use_shared_handle, nullptr), 0);
    for (int i = 0; i < 2'000; ++i) {
        shared_id.store(shared_registry.insert(Ref<Atomic>::adopt(new Atomic)));
        shared_registry.remove(shared_id.load(), "one");
    }
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    CHECK_EQUAL(shared_registry.size(), 0);
}

}  // namespace

int main() {
    RUN(a_handle_finds_its_object_until_it_is_removed);
    RUN(a_stale_handle_does_not_find_the_next_object_in_its_slot);
    RUN(null_and_invented_handles_find_nothing);
    RUN(an_object_in_use_outlives_its_handle);
    RUN(a_registry_grows_to_many_objects);
    RUN(a_handle_says_what_it_refers_to);
    RUN(an_object_that_is_being_destroyed_cannot_be_shared_again);
    RUN(threads_may_close_and_use_a_handle_at_once);
}
