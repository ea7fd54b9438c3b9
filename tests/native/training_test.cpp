// The training kernels: exponential and logarithm are accurate; kernels emulated on the host give the CPU's bytes.
#include <math.h>

#include "check.h"
#include "training_calls.h"
#include "emulation.h"

namespace {

using namespace doorstep;

// ---- Exponential and logarithm, against the C library in long double

template <class Float>
double error_in_last_place(Float found, long double expected) {
    const Float nearest = fabs(static_cast<Float>(expected));
    const Float unit = nextafter(nearest, infinity<Float>()) - nearest;
    return static_cast<double>(fabsl(static_cast<long double>(found) - expected) / static_cast<long double>(unit));
}

template <class Float>
double worst_exponential(double low, double high) {
    double worst = 0;
    for (int i = 0; i <= 200000; i++) {
        const Float x = static_cast<Float>(low + (high - low) * i / 200000);
        worst = fmax(worst, error_in_last_place(exponential(x), expl(static_cast<long double>(x))));
    }
    return worst;
}

template <class Float>
double worst_logarithm(double low, double high) {
    double worst = 0;
    for (int i = 0; i <= 200000; i++) {
        const Float x = static_cast<Float>(exp(low + (high - low) * i / 200000));
        const long double expected = logl(static_cast<long double>(x));
        if (x != Float(1)) worst = fmax(worst, error_in_last_place(natural_logarithm(x), expected));
    }
    return worst;
}

void exponentials_are_within_two_units_in_the_last_place() {
    CHECK(worst_exponential<float>(-1, 1) < 2);
    CHECK(worst_exponential<float>(-103, 88.7) < 2);
    CHECK(worst_exponential<double>(-1, 1) < 2);
    CHECK(worst_exponential<double>(-745, 709.7) < 2);
}

void logarithms_are_within_two_units_in_the_last_place() {
    CHECK(worst_logarithm<float>(-0.5, 0.5) < 2);
    CHECK(worst_logarithm<float>(-87, 88) < 2);
    CHECK(worst_logarithm<double>(-0.5, 0.5) < 2);
    CHECK(worst_logarithm<double>(-708, 709) < 2);
}

template <class Float>
void check_ends() {
    CHECK(exponential(Float(0)) == 1);
    CHECK(exponential(-infinity<Float>()) == 0);
    CHECK(exponential(infinity<Float>()) == infinity<Float>());
    CHECK(isnan(exponential(not_a_number<Float>())));
    CHECK(natural_logarithm(Float(1)) == 0);
    CHECK(isnan(natural_logarithm(not_a_number<Float>())));
    CHECK(isinf(infinity<Float>()) && infinity<Float>() > 0);
}

void ends_of_the_range_are_exact() {
    check_ends<float>();
    check_ends<double>();
}

// ---- The same bytes from every executor

void run_emulated(const char* kernel, const void* call, uint32_t grid, int way) {
    find_emulated_training_kernel(kernel)(call, grid, kTrainingThreads, static_cast<ThreadOrder>(way));
}

constexpr TrainingLaunch kLaunches[] = {{run_emulated, 3, static_cast<int>(ThreadOrder::kForwards)},
                                        {run_emulated, 1, static_cast<int>(ThreadOrder::kBackwards)},
                                        {run_emulated, 40, static_cast<int>(ThreadOrder::kShuffled)}};

void kernels_give_the_bytes_of_the_cpu() {
    for (const TrainingLaunch& launch : kLaunches)
        for (int64_t items : {1, 31, 64, 513, 1100}) {
            check_training<float>(launch, items);
            check_training<double>(launch, items);
        }
}

}  // namespace

int main() {
    RUN(exponentials_are_within_two_units_in_the_last_place);
    RUN(logarithms_are_within_two_units_in_the_last_place);
    RUN(ends_of_the_range_are_exact);
    RUN(kernels_give_the_bytes_of_the_cpu);
}
