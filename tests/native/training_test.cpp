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

// Of a function whose arguments are `of(x)` for x from low to high.
template <class Float, class Function, class Exact, class Of>
double worst(double low, double high, Function function, Exact exact, Of of) {
    double worst = 0;
    for (int i = 0; i <= 100000; i++) {
        const Float x = static_cast<Float>(of(low + (high - low) * i / 100000));
        const long double expected = exact(static_cast<long double>(x));
        if (expected != 0) worst = fmax(worst, error_in_last_place(function(x), expected));
    }
    return worst;
}

template <class Float>
void check_accuracy(double smallest, double largest) {
    const auto same = [](double x) { return x; };
    const auto power = [](double x) { return exp(x); };
    const double ranges[][2] = {{-1, 1}, {smallest, largest}};
    for (const auto& range : ranges) {
        const double low = range[0], high = range[1];
        CHECK(worst<Float>(low, high, [](Float x) { return exponential(x); }, expl, same) < 2);
        const double least = fmax(low, 1 - largest);  // powers below it are not normal
        CHECK(worst<Float>(least, high, [](Float x) { return natural_logarithm(x); }, logl, power) < 2);
    }
}

LAW(exponentials_and_logarithms_are_within_two_units_in_the_last_place) {
    check_accuracy<float>(-103, 88);
    check_accuracy<double>(-745, 708);
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

LAW(ends_of_the_range_are_exact) {
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

LAW(kernels_give_the_bytes_of_the_cpu) {
    for (const TrainingLaunch& launch : kLaunches)
        for (int64_t items : {1, 31, 64, 513, 1100}) {
            check_training<float>(launch, items);
            check_training<double>(launch, items);
        }
}

}  // namespace
