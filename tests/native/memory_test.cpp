#include "exec/cpu/cpu_simulator.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "processes.h"
#include "rollouts/output_queue.h"
#include "rollouts/recordings.h"
#include "runtime/machine.h"
#include "runtime/marks.h"
#include "runtime/reference.h"
#include "simulators.h"

namespace {

using namespace doorstep;

// A root folder with files like those in /proc and /sys, in the temporary directory.
class FakeRoot {
public:
    FakeRoot() {
        const char* parent = getenv("TMPDIR");
        snprintf(path_, sizeof path_, "%s/doorstep_root_XXXXXX", parent ? parent : P_tmpdir);
        CHECK(mkdtemp(path_));
    }
    ~FakeRoot() {
        char command[256];
        snprintf(command, sizeof command, "rm -r '%s'", path_);
        CHECK_EQUAL(system(command), 0);
    }

    const char* path() const { return path_; }

    void write(const char* file, const char* text) const {
        char full[512];
        snprintf(full, sizeof full, "%s%s", path_, file);
        for (char* slash = strchr(full + strlen(path_) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            mkdir(full, 0700);
            *slash = '/';
        }
        FILE* stream = fopen(full, "w");
        CHECK(stream);
        fputs(text, stream);
        fclose(stream);
    }

private:
    char path_[128];
};

void without_control_groups_there_is_no_limit() {
    const FakeRoot root;
    const CgroupLimits limits = read_cgroup_limits(root.path());
    CHECK_EQUAL(limits.memory_available, -1);
    CHECK_EQUAL(limits.cpus, 0);
}

void version_2_limits_are_read_and_file_cache_counts_as_free() {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "0::/job/task\n");
    root.write("/sys/fs/cgroup/job/task/memory.max", "1000000\n");
    root.write("/sys/fs/cgroup/job/task/memory.current", "700000\n");
    root.write("/sys/fs/cgroup/job/task/memory.stat", "anon 500000\ninactive_file 200000\nactive_file 1\n");
    root.write("/sys/fs/cgroup/job/task/cpu.max", "250000 100000\n");
    const CgroupLimits limits = read_cgroup_limits(root.path());
    CHECK_EQUAL(limits.memory_available, 500000);
    CHECK_EQUAL(limits.cpus, 3);
}

void the_tightest_limit_on_the_way_to_the_root_counts() {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "0::/job/task\n");
    root.write("/sys/fs/cgroup/job/task/memory.max", "max\n");
    root.write("/sys/fs/cgroup/job/task/memory.current", "7\n");
    root.write("/sys/fs/cgroup/job/task/cpu.max", "max 100000\n");
    root.write("/sys/fs/cgroup/job/memory.max", "5000\n");
    root.write("/sys/fs/cgroup/job/memory.current", "1000\n");
    root.write("/sys/fs/cgroup/job/cpu.max", "400000 100000\n");
    root.write("/sys/fs/cgroup/memory.max", "9000\n");
    root.write("/sys/fs/cgroup/memory.current", "1000\n");
    root.write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    const CgroupLimits limits = read_cgroup_limits(root.path());
    CHECK_EQUAL(limits.memory_available, 4000);
    CHECK_EQUAL(limits.cpus, 1);
}

void version_1_limits_are_read_even_if_the_path_is_the_host_s() {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/1234\n3:memory:/docker/1234\n0::/docker/1234\n");
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n");
    root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2500\n");
    root.write("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
    root.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
    root.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    const CgroupLimits limits = read_cgroup_limits(root.path());
    CHECK_EQUAL(limits.memory_available, 600);
    CHECK_EQUAL(limits.cpus, 2);
}

void version_1_groups_without_limits_are_unlimited() {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "4:cpu:/\n3:memory:/\n");
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2500\n");
    root.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    root.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    const CgroupLimits limits = read_cgroup_limits(root.path());
    CHECK_EQUAL(limits.memory_available, -1);
    CHECK_EQUAL(limits.cpus, 0);
}

void the_machine_s_free_memory_is_a_limit() {
    const FakeRoot root;
    root.write("/proc/meminfo", "MemTotal:  9999 kB\nMemFree:  1 kB\nMemAvailable:  42 kB\n");
    CHECK_EQUAL(available_memory(root.path()).bytes, 42 * 1024);
}

void mapped_pages_are_zero() {
    const Pages pages = map_pages(10'000, "num_worlds");
    CHECK(pages);
    CHECK(pages.bytes() >= 10'000);
    for (int i = 0; i < 10'000; ++i) CHECK_EQUAL(pages.data()[i], 0);
}

int64_t pages_of_process() {
    char text[128];
    CHECK(read_text_file("/proc/self/statm", text, sizeof text));
    return strtoll(text, nullptr, 10);
}

// Otherwise the kernel could not use huge pages for their begin and their end.
void large_mappings_begin_at_huge_pages_and_take_no_more_than_they_need() {
    constexpr int64_t kHuge = 2 << 20;
    for (const int64_t bytes : {kHuge - 1, kHuge, kHuge + 1, 5 * kHuge + 10'000}) {
        const int64_t before = pages_of_process();
        {
            const Pages pages = map_pages(bytes, "num_worlds");
            CHECK(pages);
            CHECK(pages.bytes() >= bytes && pages.bytes() < bytes + 4096);
            CHECK_EQUAL(pages_of_process() - before, pages.bytes() / 4096);
            if (pages.bytes() >= kHuge) CHECK_EQUAL(reinterpret_cast<uintptr_t>(pages.data()) % kHuge, 0);
            pages.data()[0] = pages.data()[pages.bytes() - 1] = 1;
        }
        CHECK_EQUAL(pages_of_process(), before);
    }
}

Ref<Memory> take_memory(int64_t bytes) {
    return CpuMemory::take(bytes, Ref<WorkProgress>::adopt(new WorkProgress), "num_worlds");
}

void memory_is_counted_while_somebody_holds_it() {
    CHECK_EQUAL(live_counts.memories.load(), 0);
    {
        const Ref<Memory> memory = take_memory(10'000), view = memory;
        CHECK_EQUAL(live_counts.memories.load(), 1);
        CHECK_EQUAL(memory->device_kind(), DS_DEVICE_CPU);
    }
    CHECK_EQUAL(live_counts.memories.load(), 0);
}

void memory_contains_its_own_bytes_only() {
    const Ref<Memory> memory = take_memory(4096);
    CHECK(memory->contains(memory->data(), 4096));
    CHECK(memory->contains(memory->data() + 4096, 0));
    CHECK(!memory->contains(memory->data(), 4097));
    CHECK(!memory->contains(memory->data() + 1, 4096));
    CHECK(!memory->contains(memory->data() - 1, 1));
    CHECK(!memory->contains(memory->data(), -1));
    CHECK(!memory->contains(nullptr, 0));
}

void more_than_there_is_is_refused_with_both_numbers() {
    CHECK(!take_memory(int64_t{1} << 50));
    CHECK(last_error_names("num_worlds"));
    CHECK(last_message_has("1125899906842624 bytes are needed"));
    CHECK(last_message_has("are available"));
    CHECK_EQUAL(live_counts.memories.load(), 0);
}

#ifndef DS_SANITIZED  // sanitizers need terabytes of address space
void an_address_space_limit_is_respected() {
    const int status = run_in_child([] {
        const rlimit limit{1 << 29, 1 << 29};
        CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
        ds_simulator simulator;
        const ds_simulator_config config = default_config(1 << 20);
        CHECK_EQUAL(ds_simulator_create(&config, &simulator), DS_STATUS_OUT_OF_MEMORY);
        CHECK(last_message_has("RLIMIT_AS"));
        check_nothing_lives();
        return 0;
    });
    CHECK_EQUAL(status, 0);
}
#else
void an_address_space_limit_is_respected() {}
#endif

}  // namespace

// Linux would promise it, and end the process that uses it.
void more_than_there_is_is_not_allocated_on_the_heap() {
    const int64_t more = available_memory().bytes + (int64_t{64} << 20);
    CHECK(has_memory_for(1));
    CHECK(has_memory_for(16 << 20));
    CHECK(!has_memory_for(more));
    StepRecord record;
    CHECK(record.add_row(100));
    CHECK(!record.add_row(more));
    CHECK_EQUAL(record.bytes(), 100);
    CHECK(!OutputMemory::copy(nullptr, more));
}

// Marks of any value, at any place of eight bytes and behind the last eight; those behind the end are not meant.
void marked_items_are_visited_in_order() {
    uint8_t marks[29] = {};
    for (const int place : {0, 7, 8, 21, 24, 26, 28}) marks[place] = static_cast<uint8_t>(place + 1);
    CHECK_EQUAL(next_unmarked(marks, 7, 28), 9);
    CHECK_EQUAL(next_unmarked(marks, 9, 28), 9);
    CHECK_EQUAL(next_unmarked(marks, 7, 8), 8);
    CHECK_EQUAL(next_unmarked(marks, 28, 29), 29);
    int visited[8] = {}, count = 0;
    for_each_marked(marks, 28, [&](int64_t item) {
        visited[count++] = static_cast<int>(item);
        marks[item] = 0;
    });
    CHECK_EQUAL(count, 6);
    const int expected[] = {0, 7, 8, 21, 24, 26};
    CHECK(memcmp(visited, expected, sizeof expected) == 0);
    CHECK_EQUAL(next_marked(marks, 0, 28), 28);
    CHECK_EQUAL(next_marked(marks, 0, 29), 28);
    CHECK_EQUAL(next_marked(marks, 29, 29), 29);
}

int main() {
    RUN(without_control_groups_there_is_no_limit);
    RUN(version_2_limits_are_read_and_file_cache_counts_as_free);
    RUN(the_tightest_limit_on_the_way_to_the_root_counts);
    RUN(version_1_limits_are_read_even_if_the_path_is_the_host_s);
    RUN(version_1_groups_without_limits_are_unlimited);
    RUN(the_machine_s_free_memory_is_a_limit);
    RUN(mapped_pages_are_zero);
    RUN(large_mappings_begin_at_huge_pages_and_take_no_more_than_they_need);
    RUN(memory_is_counted_while_somebody_holds_it);
    RUN(memory_contains_its_own_bytes_only);
    RUN(more_than_there_is_is_refused_with_both_numbers);
    RUN(an_address_space_limit_is_respected);
    RUN(more_than_there_is_is_not_allocated_on_the_heap);
    RUN(marked_items_are_visited_in_order);
}
