// How far cubes are from the buttons of doors that close again, for the reward of bringing them nearer. The reward is a
// difference, so that what cubes earn on a way they cost on the way back.
#pragma once

#include "sim/stages.h"

namespace doorstep {

// Indices of buttons or cubes of a world.
template <int Capacity>
struct IndexList {
    int8_t of[Capacity];
    int count = 0;

    DS_METHOD void add(int index) { of[count++] = static_cast<int8_t>(index); }
};

// Metres along the floor from where a cube covers the button; 0 where it does.
template <class W>
DS_INLINE float metres_between(const typename W::Bodies& bodies, int button, int cube) {
    constexpr float kCovered = kButtonHalf + kCubeHalfExtent;
    const int thing = W::thing_of_body(cube);
    const float x = maximum(absolute(bodies.x[thing] - bodies.x[button]) - kCovered, 0.f);
    const float y = maximum(absolute(bodies.y[thing] - bodies.y[button]) - kCovered, 0.f);
    return square_root(x * x + y * y);
}

// The smallest sum of distances where each row gets a column of its own; rows <= columns. Rows are added one by one,
// along the cheapest path of exchanges (Kuhn-Munkres with potentials). Whatever the distances are, a path visits every
// column at most once.
template <int Rows, int Columns, class Distance>
DS_INLINE float least_sum(int rows, int columns, const Distance& distance) {
    int8_t row_of[Columns + 1], from[Columns + 1];  // column 0 stands for the row that is added; rows count from 1
    float row_price[Rows + 1] = {}, column_price[Columns + 1] = {}, least[Columns + 1];
    for (int c = 0; c <= columns; c++) row_of[c] = 0;
    for (int added = 1; added <= rows; added++) {
        uint32_t visited = 0;
        int column = 0;
        row_of[0] = static_cast<int8_t>(added);
        for (int c = 1; c <= columns; c++) {
            least[c] = kNowhere;
            from[c] = 0;
        }
        do {
            visited |= 1u << column;
            const int row = row_of[column];
            int next = -1;
            for (int c = 1; c <= columns; c++) {
                if (visited >> c & 1) continue;
                const float price = distance(row - 1, c - 1) - row_price[row] - column_price[c];
                if (price < least[c]) {
                    least[c] = price;
                    from[c] = static_cast<int8_t>(column);
                }
                if (next < 0 || least[c] < least[next]) next = c;
            }
            const float step = least[next];
            for (int c = 0; c <= columns; c++) {
                if (visited >> c & 1) {
                    row_price[row_of[c]] += step;
                    column_price[c] -= step;
                } else {
                    least[c] -= step;
                }
            }
            column = next;
        } while (row_of[column]);
        while (column) {
            row_of[column] = row_of[from[column]];
            column = from[column];
        }
    }
    float sum = 0.f;
    for (int c = 1; c <= columns; c++)
        if (row_of[c]) sum += distance(row_of[c] - 1, c - 1);
    return sum;
}

// The least distance, and the least without its column.
struct TwoLeast {
    float first = kNowhere, second = kNowhere;
    int column = -1;

    DS_METHOD void add(float distance, int of_column) {
        if (distance < first) {
            second = first;
            first = distance;
            column = of_column;
        } else if (distance < second) {
            second = distance;
        }
    }
};

template <class Distance>
DS_INLINE TwoLeast two_least(int row, int columns, const Distance& distance) {
    TwoLeast least;
    for (int c = 0; c < columns; c++) least.add(distance(row, c), c);
    return least;
}

// As least_sum(), which takes longer, for one row or two.
template <class Distance>
DS_INLINE float least_sum_of_two(int rows, int columns, const Distance& distance) {
    const TwoLeast a = two_least(0, columns, distance);
    if (rows == 1) return a.first;
    const TwoLeast b = two_least(1, columns, distance);
    return a.column != b.column ? a.first + b.first : minimum(a.first + b.second, a.second + b.first);
}

// Each button of a door that closes again has a cube of its own, as far as there are enough, among the buttons of its
// door.
template <class W>
DS_NOINLINE float metres_to_buttons(const typename W::Terms& terms, typename W::AgentCount agents,
                                    const typename W::Bodies& bodies, const typename W::Buttons& buttons,
                                    const typename W::Doors& doors) {
    IndexList<W::kCubes> cubes;
    for (int body = agents.num_agents(); body < agents.num_agents() + W::kCubes; body++)
        if (bodies.kind[body] == DS_ENTITY_CUBE) cubes.add(body);
    float sum = 0.f;
    for (int door = 0; door < terms.used_doors(W::kDoors) && cubes.count; door++) {
        if (doors.persistent[door]) continue;
        IndexList<W::kButtons> of_door;
        for (int b = 0; b < terms.used_buttons(W::kButtons); b++)
            if (buttons.door[b] == door) of_door.add(b);
        if (!of_door.count) continue;
        const bool swapped = of_door.count > cubes.count;
        const int rows = swapped ? cubes.count : of_door.count, columns = swapped ? of_door.count : cubes.count;
        constexpr int kMost = W::kCubes > W::kButtons ? W::kCubes : W::kButtons;
        constexpr int kLeast = W::kCubes > W::kButtons ? W::kButtons : W::kCubes;
        const auto distance = [&](int row, int column) {
            const int button = of_door.of[swapped ? column : row], cube = cubes.of[swapped ? row : column];
            return metres_between<W>(bodies, button, cube);
        };
        sum += rows <= 2 ? least_sum_of_two(rows, columns, distance) : least_sum<kLeast, kMost>(rows, columns, distance);
    }
    return sum;
}

// ---- Stages

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::measure_cubes(const GivenRewards& given, const Terms& terms, AgentCount agents,
                                            const Bodies& bodies, const Buttons& buttons, const Doors& doors,
                                            CubesAway& away) {
    away.counts = terms.rewards_of(given).cube_approach != 0.f;
    if (away.counts) away.metres = metres_to_buttons<World>(terms, agents, bodies, buttons, doors);
}

}  // namespace doorstep
