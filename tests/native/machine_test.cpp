// What the library knows of the machine: its processor, control groups and memory; and what it takes of them.
#include "exec/cpu/cpu_simulator.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <string>

#include "processes.h"
#include "rollouts/request.h"
#include "runtime/machine.h"
#include "runtime/marks.h"
#include "runtime/reference.h"
#include "simulators.h"

namespace {

using namespace doorstep;

// ---- Its processor

// Bits of the processor manuals: leaf 1 ecx 12 FMA, 27 OSXSAVE, 28 AVX; leaf 7 ebx 5 AVX2, 8 BMI2.
constexpr CpuidWords kHaswell{1u << 12 | 1u << 27 | 1u << 28, 1u << 5 | 1u << 8, 7};

CpuidWords without(CpuidWords words, uint32_t leaf1, uint32_t leaf7) {
    words.leaf1_ecx &= ~leaf1;
    words.leaf7_ebx &= ~leaf7;
    return words;
}

LAW(each_missing_feature_is_seen_and_an_operating_system_that_saves_no_avx_state) {
    CHECK(decode_cpu_features(kHaswell).sufficient());
    CHECK(!decode_cpu_features(without(kHaswell, 1u << 12, 0)).fma);
    CHECK(!decode_cpu_features(without(kHaswell, 0, 1u << 5)).avx2);
    CHECK(!decode_cpu_features(without(kHaswell, 1u << 28, 0)).avx2);
    CHECK(!decode_cpu_features(without(kHaswell, 0, 1u << 8)).bmi2);
    CHECK(!decode_cpu_features(without(kHaswell, 1u << 27, 0)).os_saves_avx);
    CHECK(!decode_cpu_features(CpuidWords{}).sufficient());
    for (uint32_t xcr0 : {0u, 1u, 2u, 3u, 4u, 5u}) {
        CpuidWords words = kHaswell;
        words.xcr0 = xcr0;
        CHECK(!decode_cpu_features(words).os_saves_avx && !decode_cpu_features(words).sufficient());
    }
}

// Leaf 7 ebx: 16 F, 17 DQ, 28 CD, 30 BW, 31 VL; the operating system saves masks and upper registers (bits 5 to 7).
LAW(avx512_needs_all_of_its_parts) {
    constexpr uint32_t kParts[] = {1u << 16, 1u << 17, 1u << 28, 1u << 30, 1u << 31};
    CpuidWords words = kHaswell;
    for (const uint32_t part : kParts) words.leaf7_ebx |= part;
    words.xcr0 = 0xE7;
    CHECK(decode_cpu_features(words).avx512 && decode_cpu_features(words).sufficient());
    CHECK(!decode_cpu_features(kHaswell).avx512);
    for (const uint32_t part : kParts) CHECK(!decode_cpu_features(without(words, 0, part)).avx512);
    CHECK(!decode_cpu_features(without(words, 0, 1u << 5)).avx512);
    for (const uint32_t saved : {0x7u, 0x67u, 0xA7u, 0xC7u}) {
        words.xcr0 = saved;
        CHECK(!decode_cpu_features(words).avx512);
    }
}

// ---- Its memory

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

// Version 2 with a file cache, which counts as free; limits above a group; version 1, whose path may be the host's; and
// groups of version 1 without limits.
LAW(the_tightest_limit_of_either_version_of_control_groups_counts) {
    const struct {
        const char* group;
        std::vector<std::array<const char*, 2>> files;  // below /sys/fs/cgroup
        int64_t memory;
        int cpus;
    } machines[] = {
        {nullptr, {}, -1, 0},
        {"0::/job/task\n",
         {{"/job/task/memory.max", "1000000\n"},
          {"/job/task/memory.current", "700000\n"},
          {"/job/task/memory.stat", "anon 500000\ninactive_file 200000\nactive_file 1\n"},
          {"/job/task/cpu.max", "250000 100000\n"}},
         500000, 3},
        {"0::/job/task\n",
         {{"/job/task/memory.max", "max\n"}, {"/job/task/memory.current", "7\n"}, {"/job/task/cpu.max", "max 100000\n"},
          {"/job/memory.max", "5000\n"}, {"/job/memory.current", "1000\n"}, {"/job/cpu.max", "400000 100000\n"},
          {"/memory.max", "9000\n"}, {"/memory.current", "1000\n"}, {"/cpu.max", "100000 100000\n"}},
         4000, 1},
        {"4:cpu,cpuacct:/docker/1234\n3:memory:/docker/1234\n0::/docker/1234\n",
         {{"/memory/memory.limit_in_bytes", "3000\n"},
          {"/memory/memory.usage_in_bytes", "2500\n"},
          {"/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n"},
          {"/cpu,cpuacct/cpu.cfs_quota_us", "150000\n"}, {"/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}},
         600, 2},
        {"4:cpu:/\n3:memory:/\n",
         {{"/memory/memory.limit_in_bytes", "9223372036854771712\n"}, {"/memory/memory.usage_in_bytes", "2500\n"},
          {"/cpu/cpu.cfs_quota_us", "-1\n"}, {"/cpu/cpu.cfs_period_us", "100000\n"}},
         -1, 0}};
    for (const auto& machine : machines) {
        const FakeRoot root;
        if (machine.group) root.write("/proc/self/cgroup", machine.group);
        for (const auto& [name, text] : machine.files) root.write((std::string("/sys/fs/cgroup") + name).c_str(), text);
        const CgroupLimits limits = read_cgroup_limits(root.path());
        CHECK_EQUAL(limits.memory_available, machine.memory);
        CHECK_EQUAL(limits.cpus, machine.cpus);
    }
}

LAW(the_machine_s_free_memory_is_a_limit) {
    const FakeRoot root;
    root.write("/proc/meminfo", "MemTotal:  9999 kB\nMemFree:  1 kB\nMemAvailable:  42 kB\n");
    CHECK_EQUAL(available_memory(root.path()).bytes, 42 * 1024);
}

int64_t pages_of_process() {
    char text[128];
    CHECK(read_text_file("/proc/self/statm", text, sizeof text));
    return strtoll(text, nullptr, 10);
}

// Otherwise the kernel could not use huge pages for their begin and their end.
LAW(large_mappings_begin_at_huge_pages_and_take_no_more_than_they_need) {
    constexpr int64_t kHuge = 2 << 20;
    for (const int64_t bytes : {kHuge - 1, kHuge, kHuge + 1, 5 * kHuge + 10'000}) {
        const int64_t before = pages_of_process();
        {
            const Pages pages = map_pages(bytes, "num_worlds");
            CHECK(pages && pages.bytes() >= bytes && pages.bytes() < bytes + 4096);
            CHECK_EQUAL(pages_of_process() - before, pages.bytes() / 4096);
            if (pages.bytes() >= kHuge) CHECK_EQUAL(reinterpret_cast<uintptr_t>(pages.data()) % kHuge, 0);
            for (int64_t i = 0; i < pages.bytes(); i += 4096) CHECK_EQUAL(pages.data()[i], 0);
            pages.data()[0] = pages.data()[pages.bytes() - 1] = 1;
        }
        CHECK_EQUAL(pages_of_process(), before);
    }
}

Ref<Memory> take_memory(int64_t bytes) {
    return CpuMemory::take(bytes, Ref<WorkProgress>::adopt(new WorkProgress), "num_worlds");
}

LAW(memory_is_counted_while_somebody_holds_it_and_contains_its_own_bytes_only) {
    {
        const Ref<Memory> memory = take_memory(4096), view = memory;
        CHECK_EQUAL(live_counts.memories.load(), 1);
        CHECK_EQUAL(memory->device_kind(), DS_DEVICE_CPU);
        CHECK(memory->contains(memory->data(), 4096) && memory->contains(memory->data() + 4096, 0));
        CHECK(!memory->contains(memory->data(), 4097) && !memory->contains(memory->data() + 1, 4096));
        CHECK(!memory->contains(memory->data() - 1, 1) && !memory->contains(memory->data(), -1));
        CHECK(!memory->contains(nullptr, 0));
    }
    CHECK_EQUAL(live_counts.memories.load(), 0);
}

LAW(more_than_there_is_is_refused_with_both_numbers) {
    CHECK(!take_memory(int64_t{1} << 50) && last_error_names("num_worlds"));
    CHECK(last_message_has("1125899906842624 bytes are needed") && last_message_has("are available"));
}

#ifndef DS_SANITIZED  // sanitizers need terabytes of address space
LAW(an_address_space_limit_is_respected) {
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
#endif

// Linux would promise it, and end the process that uses it.
LAW(more_than_there_is_is_not_allocated_on_the_heap) {
    const int64_t more = available_memory().bytes + (int64_t{64} << 20);
    CHECK(has_memory_for(1) && has_memory_for(16 << 20) && !has_memory_for(more));
    CHECK(!OutputMemory::make(more));
}

// Marks of any value, at any place of eight bytes and behind the last eight; those behind the end are not meant.
LAW(marked_items_are_visited_in_order) {
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

}  // namespace
