// What every stage of a step changes, field by field, compared with a trace that is kept in golden_trace.txt: where
// results change, the first line that differs names scene, step, stage and field: a diff shows it.
//
// A changed trace means that results change for users: describe that in the changelog, then replace golden_trace.txt by
// the file that this test writes.
#pragma once

#include <stdio.h>

#include <string>

#include "check.h"
#include "math/float_environment.h"
#include "runtime/hash.h"
#include "staged_worlds.h"

namespace {

constexpr int kTracedSteps = 10;

struct Field {
    const char* name;
    size_t offset, bytes;
};

#define DS_FIELD(part, row) {#part "." #row, offsetof(W, part.row), sizeof(W::part.row)},
#define DS_FIELDS(X)                                                                                                \
    X(bodies, x) X(bodies, y) X(bodies, z)                                                                          \
    X(bodies, rotation_w) X(bodies, rotation_x) X(bodies, rotation_y) X(bodies, rotation_z)                         \
    X(bodies, velocity_x) X(bodies, velocity_y) X(bodies, velocity_z)                                               \
    X(bodies, spin_x) X(bodies, spin_y) X(bodies, spin_z)                                                           \
    X(bodies, min_x) X(bodies, max_x) X(bodies, min_y) X(bodies, max_y) X(bodies, min_z) X(bodies, kind)            \
    X(statics, x) X(statics, y) X(statics, z) X(statics, size_x) X(statics, size_y) X(statics, size_z)              \
    X(statics, kind) X(buttons, pressed) X(buttons, door) X(doors, open) X(doors, panel) X(doors, persistent)       \
    X(rooms, thing) X(rooms, padding) X(grabs, held) X(grabs, joined) X(grabs, joint) X(progress, max_y)            \
    X(progress, episode_return) X(sleep, cubes) X(episode, steps_remaining) X(episode, done) X(identity, seed)      \
    X(identity, global_index) X(identity, episode_index) X(identity, age) X(health, clamped_actions)                \
    X(health, dropped_contacts) X(health, nonfinite_values) X(health, repaired_indices) X(health, culprit_body)     \
    X(health, culprit_step)
constexpr Field kFields[] = {DS_FIELDS(DS_FIELD)};
constexpr int kFieldCount = sizeof(kFields) / sizeof(kFields[0]);

constexpr size_t bytes_of_fields() {
    size_t bytes = 0;
    for (const Field& field : kFields) bytes += field.bytes;
    return bytes;
}
static_assert(bytes_of_fields() == sizeof(W), "every field of a world is traced");

uint32_t hash_of(const std::vector<Block>& blocks, const Field& field) {
    std::vector<uint8_t> bytes;
    for (const Block& block : blocks) {
        const uint8_t* from = reinterpret_cast<const uint8_t*>(&block.world) + field.offset;
        bytes.insert(bytes.end(), from, from + field.bytes);
    }
    return static_cast<uint32_t>(hash_bytes(bytes.data(), bytes.size()));
}

// One line per stage and field whose hash differs from before the stage, and per tensor that a step changes.
struct Trace {
    std::string text{};
    std::vector<uint32_t> fields{}, tensors{};

    void add(const std::string& where, const char* name, uint32_t hash, uint32_t& before) {
        if (hash == before) return;
        before = hash;
        char line[160];
        snprintf(line, sizeof line, "%s %s %08x\n", where.c_str(), name, static_cast<unsigned>(hash));
        text += line;
    }
};

void trace(const char* scene, const std::vector<Block>& start, bool look_for_edits, Trace& trace) {
    LanesBatch<WideFloat> batch{"wide", 64};
    prepare(batch, start, look_for_edits);
    trace.fields.assign(kFieldCount, 0);
    trace.tensors.assign(DS_TENSOR_COUNT, 0);
    for (int field = 0; field < kFieldCount; field++)
        trace.add(std::string(scene) + " start", kFields[field].name, hash_of(batch.blocks, kFields[field]),
                  trace.fields[field]);
    for (int step = 0; step < kTracedSteps; step++) {
        char at_step[16];
        snprintf(at_step, sizeof at_step, " step %d ", step);
        const std::string at = std::string(scene) + at_step;
        write_actions(batch, step);
        for (int stage = 0; stage < kNumStages; stage++) {
            batch.run(stage);
            for (int field = 0; field < kFieldCount; field++)
                trace.add(at + kNames[stage], kFields[field].name, hash_of(batch.blocks, kFields[field]),
                          trace.fields[field]);
        }
        for (size_t i = 0; i < DS_TENSOR_COUNT; i++) {
            if (kTensorRows[i].presence == Presence::LEVELS) continue;
            trace.add(at + "tensors", kTensorRows[i].name,
                      static_cast<uint32_t>(hash_bytes(batch.tensors[i].data(), batch.tensors[i].size())),
                      trace.tensors[i]);
        }
    }
}

std::string read_file(const char* path) {
    std::string text;
    if (FILE* file = fopen(path, "rb")) {
        char part[4096];
        for (size_t count; (count = fread(part, 1, sizeof part, file)) > 0;) text.append(part, count);
        fclose(file);
    }
    return text;
}

void stages_change_what_they_changed_before() {
    const doorstep::DefaultFloatEnvironment environment;
    Trace traced;
    trace("first levels", first_levels(), false, traced);
    trace("among cubes", among_cubes(), true, traced);
    const std::string golden = read_file(DS_GOLDEN_TRACE);
    if (traced.text == golden) return;

    const char* written = "golden_trace.txt";
    FILE* file = fopen(written, "wb");
    CHECK(file && fwrite(traced.text.data(), 1, traced.text.size(), file) == traced.text.size() && fclose(file) == 0);
    fprintf(stderr, "results change: compare %s with %s, which is in this folder\n", DS_GOLDEN_TRACE, written);
    abort();
}

}  // namespace
