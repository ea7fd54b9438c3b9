#include "runtime/handles.h"

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

LAW(a_handle_finds_its_object_until_it_is_removed_and_never_the_next_one_in_its_slot) {
    int alive = 0;
    static HandleRegistry<Counted> registry{HandleKind::SIMULATOR};
    const uint64_t id = registry.insert(make(&alive));
    CHECK(id != 0 && registry.find(id, "one"));
    for (const uint64_t invented : {uint64_t{0}, id + 1, id + (uint64_t{1} << 32), UINT64_MAX})
        CHECK(!registry.find(invented, "one"));
    {
        const Ref<Counted> used = registry.find(id, "one");
        CHECK(registry.remove(id, "one"));
        CHECK_EQUAL(alive, 1);  // what is in use outlives its handle
    }
    CHECK_EQUAL(alive, 0);
    CHECK(!registry.remove(id, "one"));
    const uint64_t next = registry.insert(make(&alive));
    CHECK_EQUAL(static_cast<uint32_t>(next), static_cast<uint32_t>(id));
    CHECK(!registry.find(id, "one") && registry.find(next, "one"));
    uint64_t ids[1000];
    for (uint64_t& other : ids) other = registry.insert(make(&alive));
    CHECK_EQUAL(registry.size(), 1001);
    for (const uint64_t other : ids) CHECK(registry.find(other, "one"));
    for (const uint64_t other : ids) registry.remove(other, "one");
    registry.remove(next, "one");
    CHECK_EQUAL(alive, 0);
    CHECK_EQUAL(registry.size(), 0);
}

LAW(a_handle_says_what_it_refers_to) {
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

LAW(an_object_that_is_being_destroyed_cannot_be_shared_again) {
    Ref<Searching> object = Ref<Searching>::adopt(new Searching);
    CHECK(Ref<Searching>::share_if_alive(object.get()));
    object = {};
    CHECK(!Searching::found);
}

struct Atomic : RefCounted {
    std::atomic<int> uses{0};
};

LAW(threads_may_close_and_use_a_handle_at_once) {
    static HandleRegistry<Atomic> registry{HandleKind::SIMULATOR};
    std::atomic<uint64_t> id{0};
    {
        const auto use = [&] {
            for (int i = 0; i < 20'000; ++i)
                if (const Ref<Atomic> found = registry.find(id.load(), "one")) found->uses.fetch_add(1);
        };
        JoiningThread threads[] = {JoiningThread(use), JoiningThread(use), JoiningThread(use)};
        for (int i = 0; i < 2'000; ++i) {
            id.store(registry.insert(Ref<Atomic>::adopt(new Atomic)));
            registry.remove(id.load(), "one");
        }
    }
    CHECK_EQUAL(registry.size(), 0);
}

}  // namespace
