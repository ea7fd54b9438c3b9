// The stages of a step give the same bytes with one float per lane, as on CUDA, with eight, and with sixteen where this
// file is compiled for AVX-512, for any division of the worlds into tiles.
#include "check.h"
#include "math/float_environment.h"
#include "runtime/machine.h"
#include "staged_worlds.h"
#ifdef DS_GOLDEN_TRACE
#include "golden_trace.h"
#endif

namespace {

#if defined(__AVX512F__)
using Wide = WidestFloat;
bool machine_has_lanes() { return cpu_features().avx512; }
#else
using Wide = WideFloat;
bool machine_has_lanes() { return cpu_features().avx2; }
#endif

// Aborts at the first byte that differs, if any does.
void expect_equal(const void* left, const void* right, size_t bytes, const Batch& batch, int step, int stage,
                  const char* where, size_t item) {
    if (bytes == 0 || memcmp(left, right, bytes) == 0) return;
    const uint8_t *a = static_cast<const uint8_t*>(left), *b = static_cast<const uint8_t*>(right);
    size_t at = 0;
    while (a[at] == b[at]) at++;
    fprintf(stderr, "%d agents, %s lanes in tiles of %d: first differs in step %d after %s: %s %zu, byte %zu\n",
            kAgents, batch.lanes, batch.tile_worlds, step, kNames[stage], where, item, at);
    abort();
}

void step_together(const std::vector<Block>& start, bool look_for_edits) {
    const DefaultFloatEnvironment environment;
    LanesBatch<NarrowFloat> narrow[] = {{"narrow", 64}, {"narrow", 1}};
    LanesBatch<WideFloat, Wide> wide[] = {{"wide", 64}, {"wide", 7}, {"wide", 1}};
    Batch* const batches[] = {&narrow[0], &narrow[1], &wide[0], &wide[1], &wide[2]};
    const Batch& reference = narrow[0];
    for (Batch* batch : batches) prepare(*batch, start, look_for_edits);
    for (int step = 0; step < kSteps; step++) {
        for (Batch* batch : batches) write_actions(*batch, step);
        for (int stage = 0; stage < kNumStages; stage++)
            for (Batch* batch : batches) {
                batch->run(stage);
                for (size_t i = 0; i < kWorlds; i++)
                    expect_equal(&reference.blocks[i], &batch->blocks[i], sizeof(Block), *batch, step, stage, "world",
                                 i);
            }
        for (Batch* batch : batches)
            for (size_t i = 0; i < DS_TENSOR_COUNT; i++)
                expect_equal(reference.tensors[i].data(), batch->tensors[i].data(), reference.tensors[i].size(), *batch,
                             step, kNumStages - 1, kTensorRows[i].name, i);
    }
    uint32_t moved = 0;
    for (size_t i = 0; i < kWorlds; i++) moved += memcmp(&start[i], &reference.blocks[i], sizeof(Block)) != 0;
    CHECK_EQUAL(moved, kWorlds);
}

void lanes_and_tiles_do_not_change_a_byte_from_the_normal_start() { step_together(first_levels(), false); }

void lanes_and_tiles_do_not_change_a_byte_among_cubes() { step_together(among_cubes(), true); }

// Not a part of main(), which every processor must be able to run.
__attribute__((noinline)) void run_all() {
    RUN(lanes_and_tiles_do_not_change_a_byte_from_the_normal_start);
    RUN(lanes_and_tiles_do_not_change_a_byte_among_cubes);
#ifdef DS_GOLDEN_TRACE
    RUN(stages_change_what_they_changed_before);
#endif
}

}  // namespace

int main() {
    if (machine_has_lanes()) run_all();
}
