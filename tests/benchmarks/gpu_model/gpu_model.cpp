// A model of a GPU that executes the kernels' PTX: what a step, a view and an action cost, and between which speeds an
// H100 or H200 would be. Predicted, never measured. Prints Markdown tables.
//
//     gpu_model [--stages] [--worlds=N] [--steps=N] [CASE...]
//
// A CASE is a part of a case's name, such as "normal/2" or "drawn"; without any, all are executed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "step_cases.h"

namespace {

using namespace gpu_model;

struct Options {
    bool stages = false;
    int worlds = 256, steps = 3;
    std::vector<const char*> cases;

    bool chooses(const std::string& name) const {
        for (const char* part : cases)
            if (name.find(part) != std::string::npos) return true;
        return cases.empty();
    }
};

Cost sum_of(const TileCost& tile) {
    Cost sum;
    for (const Cost& interval : tile) sum.add(interval);
    return sum;
}

void print_row(const char* name, const Cost& sum, double units, double tiles) {
    printf("| %s | %.0f | %.1f | %.0f | %.0f | %.1f | %.1f |\n", name, sum.slots / units,
           sum.slots > 0 ? sum.lane_slots / sum.slots : 0., sum.wavefronts / units, sum.device_bytes / units,
           sum.cycles[kFree] / tiles / 1e3, sum.cycles[kStrict] / tiles / 1e3);
}

void print_stages(const Measured& measured, double units) {
    for (size_t k = 0; k < measured.stages.size(); ++k) {
        Cost sum;
        for (const TileCost& tile : measured.tiles) sum.add(tile[k]);
        print_row(measured.stages[k], sum, units, static_cast<double>(measured.tiles.size()));
    }
}

double rate(const Measured& measured, const std::vector<Cost>& sample, int64_t units, Order order, double clock,
            const Device& device) {
    const double per_tile = measured.units_per_tile;
    const auto tiles = static_cast<int64_t>((static_cast<double>(units) + per_tile - 1) / per_tile);
    return static_cast<double>(units) / seconds_for(tiles, sample, measured.needs, order, clock, device);
}

void print_rates(const Measured& measured, const std::vector<Cost>& sample) {
    for (const int64_t units : measured.batches) {
        printf("predicted, not measured: %lld %ss:", static_cast<long long>(units), measured.unit);
        for (const Device& device : kDevices)
            printf(" %s %.1f to %.1f M %ss/s", device.name,
                   rate(measured, sample, units, kStrict, kSlowestClock, device) / 1e6,
                   rate(measured, sample, units, kFree, kFastestClock, device) / 1e6, measured.unit);
        printf("\n");
    }
}

void print(const Measured& measured, bool stages) {
    const double tiles = static_cast<double>(measured.tiles.size()), units = tiles * measured.units_per_tile;
    std::vector<Cost> sample;
    Cost sum;
    for (const TileCost& tile : measured.tiles) {
        sample.push_back(sum_of(tile));
        sum.add(sample.back());
    }
    printf("\n%s: %d blocks a multiprocessor, %u registers, %u bytes of shared memory\n\n", measured.name.c_str(),
           resident_blocks(measured.needs), measured.needs.registers, measured.needs.shared_bytes);
    printf("| per %s | slots | lanes | wavefronts | bytes | k cycles of a tile, free | strict |\n", measured.unit);
    printf("|---|---|---|---|---|---|---|\n");
    if (stages) print_stages(measured, units);
    print_row("all", sum, units, tiles);
    printf("\n");
    print_rates(measured, sample);
    fflush(stdout);
}

Options read_options(int count, char** values) {
    Options options;
    for (int i = 1; i < count; ++i) {
        if (strcmp(values[i], "--stages") == 0) options.stages = true;
        else if (strncmp(values[i], "--worlds=", 9) == 0) options.worlds = atoi(values[i] + 9);
        else if (strncmp(values[i], "--steps=", 8) == 0) options.steps = atoi(values[i] + 8);
        else options.cases.push_back(values[i]);
    }
    return options;
}

}  // namespace

int main(int count, char** values) {
    const Options options = read_options(count, values);
    for (int scene = 0; scene < kStepScenes; ++scene)
        for (const int agents : {2, 1, 4, 8})
            if (options.chooses(std::string(kSceneNames[scene]) + "/" + std::to_string(agents)))
                print(measure_steps(static_cast<StepScene>(scene), agents, options.worlds, options.steps),
                      options.stages);
}
