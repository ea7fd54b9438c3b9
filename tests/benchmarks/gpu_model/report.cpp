#include "report.h"

#include <math.h>
#include <stdio.h>

namespace gpu_model {
namespace {

Cost sum_of(const TileCost& intervals) {
    Cost sum;
    for (const Cost& interval : intervals) sum.add(interval);
    return sum;
}

std::vector<Cost> totals_of(const std::vector<TileCost>& tiles) {
    std::vector<Cost> totals;
    for (const TileCost& tile : tiles) totals.push_back(sum_of(tile));
    return totals;
}

double num_units(const Measured& measured) {
    return static_cast<double>(measured.tiles.size()) * measured.units_per_tile;
}

// Cells that a case and a stage have in common.
void print_cells(const char* name, const Cost& sum, const Measured& measured) {
    const double units = num_units(measured), tiles = static_cast<double>(measured.tiles.size());
    printf("| %s | %.0f | %.1f | %.0f | %.0f | %.1f | %.1f |", name, sum.slots / units,
           sum.slots > 0 ? sum.lane_slots / sum.slots : 0., sum.wavefronts / units, sum.l2_bytes / units,
           sum.cycles[kFree] / tiles / 1e3, sum.cycles[kStrict] / tiles / 1e3);
}

// Nanoseconds of the whole device for a unit at the slowest clock, if nothing else limited it: issue slots, load/store
// units, latency, memory.
void print_limits(const Cost& sum, const Measured& measured) {
    const double units = num_units(measured), cycle = 1e9 / kSlowestClock / kMultiprocessors;
    const double tiles_at_once = resident_blocks(measured.needs);
    printf(" %.2f | %.2f | %.2f to %.2f |", sum.slots / units / kSchedulers * cycle, sum.wavefronts / units * cycle,
           sum.cycles[kFree] / units / tiles_at_once * cycle, sum.cycles[kStrict] / units / tiles_at_once * cycle);
    for (const Device& device : kDevices) printf(" %.2f |", sum.l2_bytes / units / device.bytes_per_second * 1e9);
}

double rate(const Measured& measured, const std::vector<Cost>& sample, int64_t units, Order order, double clock,
            const Device& device) {
    const auto tiles = static_cast<int64_t>(ceil(static_cast<double>(units) / measured.units_per_tile));
    return static_cast<double>(units) / seconds_for(tiles, sample, measured.needs, order, clock, device);
}

}  // namespace

void print_cost_header() {
    printf("Per world, view or row, of a tile or block alone:\n\n");
    printf("| case | warp instruction slots | mean lanes | load/store wavefronts | bytes from and to L2 |"
           " thousand cycles of a tile, free order | strict order | blocks a multiprocessor |\n");
    printf("|---|---|---|---|---|---|---|---|\n");
}

void print_costs(const Measured& measured) {
    print_cells(measured.name.c_str(), sum_of(totals_of(measured.tiles)), measured);
    printf(" %d |\n", resident_blocks(measured.needs));
    fflush(stdout);
}

void print_stages(const Measured& measured) {
    printf("\n%s: per %s; then nanoseconds that each limit alone would allow, predicted, not measured\n\n",
           measured.name.c_str(), measured.unit);
    printf("| stage | slots | lanes | wavefronts | L2 bytes | k cycles, free | strict |");
    printf(" issue | load/store | latency |");
    for (const Device& device : kDevices) printf(" memory of an %s |", device.name);
    printf("\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    const auto print_row = [&](const char* name, const Cost& sum) {
        print_cells(name, sum, measured);
        print_limits(sum, measured);
        printf("\n");
    };
    for (size_t k = 0; k < measured.stages.size(); ++k) {
        Cost sum;
        for (const TileCost& tile : measured.tiles) sum.add(tile[k]);
        print_row(measured.stages[k], sum);
    }
    print_row("all", sum_of(totals_of(measured.tiles)));
}

void print_rates(const std::vector<Measured>& cases) {
    printf("\nPredicted by the model, not measured, millions per second:\n\n| case | batch |");
    for (const Device& device : kDevices) printf(" %s |", device.name);
    printf("\n|---|---|---|---|\n");
    for (const Measured& measured : cases) {
        const std::vector<Cost> sample = totals_of(measured.tiles);
        for (const int64_t units : measured.batches) {
            printf("| %s | %lld %ss |", measured.name.c_str(), static_cast<long long>(units), measured.unit);
            for (const Device& device : kDevices)
                printf(" %.3g to %.3g |", rate(measured, sample, units, kStrict, kSlowestClock, device) / 1e6,
                       rate(measured, sample, units, kFree, kFastestClock, device) / 1e6);
            printf("\n");
        }
    }
}

}  // namespace gpu_model
