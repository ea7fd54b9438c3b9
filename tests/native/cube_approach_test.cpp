// The sums of distances between buttons and cubes, without a world.
#include "sim/cube_approach.h"

#include "check.h"
#include "draws.h"

namespace {

using namespace doorstep;

constexpr int kMostColumns = 24;

// By trying all pairs.
float least_sum_of_pairs(int columns, const float (&distances)[2][kMostColumns]) {
    float least = kNowhere;
    for (int a = 0; a < columns; a++)
        for (int b = 0; b < columns; b++)
            if (a != b) least = minimum(least, distances[0][a] + distances[1][b]);
    return least;
}

void sums_of_one_or_two_rows_are_those_of_the_general_method() {
    Draws draws{7};
    for (int attempt = 0; attempt < 20000; attempt++) {
        const int columns = draws.integer(2, kMostColumns + 1);
        float distances[2][kMostColumns];
        for (float(&row)[kMostColumns] : distances)
            for (float& distance : row) distance = maximum(draws.between(-3.f, 12.f), 0.f);  // some cubes cover a button
        const auto distance = [&](int row, int column) { return distances[row][column]; };
        // Of equal sums the methods may take different ones, so that the last bits differ
        const float two = least_sum_of_two(2, columns, distance);
        CHECK(two == least_sum_of_pairs(columns, distances));
        CHECK_NEAR(two, (least_sum<2, kMostColumns>(2, columns, distance)), 1e-5);
        CHECK(least_sum_of_two(1, columns, distance) == (least_sum<1, kMostColumns>(1, columns, distance)));
    }
}

void one_row_and_one_column_have_their_distance() {
    const auto distance = [](int, int) { return 3.5f; };
    CHECK(least_sum_of_two(1, 1, distance) == 3.5f);
}

}  // namespace

int main() {
    RUN(sums_of_one_or_two_rows_are_those_of_the_general_method);
    RUN(one_row_and_one_column_have_their_distance);
}
