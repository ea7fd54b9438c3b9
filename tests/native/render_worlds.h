// Handmade worlds for renderers, with objects in any pose and in places where no simulation would put them.
#pragma once

#include <math.h>

#include <vector>

#include "draws.h"
#include "render/cameras/renderers.h"

struct RenderWorlds {
    static constexpr int kAgents = 2, kBodies = 5, kStatics = 4, kButtons = 3;

    explicit RenderWorlds(int count) : num_worlds(count) {
        const auto n = static_cast<size_t>(count);
        body_positions.resize(n * kBodies * 3);
        body_rotations.resize(n * kBodies * 4);
        body_sizes.resize(n * kBodies * 3);
        body_kinds.resize(n * kBodies);
        static_positions.resize(n * kStatics * 3);
        static_sizes.resize(n * kStatics * 3);
        static_kinds.resize(n * kStatics);
        button_positions.resize(n * kButtons * 3);
        button_pressed.resize(n * kButtons);
        for (int world = 0; world < count; ++world) fill(world);
    }

    doorstep::WorldFields fields() const {
        return {kAgents,
                kBodies,
                kStatics,
                kButtons,
                field(body_positions, kBodies, 3),
                field(body_rotations, kBodies, 4),
                field(body_sizes, kBodies, 3),
                field(body_kinds, kBodies, 1),
                field(static_positions, kStatics, 3),
                field(static_sizes, kStatics, 3),
                field(static_kinds, kStatics, 1),
                field(button_positions, kButtons, 3),
                field(button_pressed, kButtons, 1)};
    }

    int num_worlds;
    std::vector<float> body_positions, body_rotations, body_sizes, static_positions, static_sizes, button_positions;
    std::vector<int32_t> body_kinds, static_kinds, button_pressed;

private:
    template <class Value>
    doorstep::FieldView field(const std::vector<Value>& values, int items, int components) const {
        return {reinterpret_cast<const char*>(values.data()), 4 * items * components, 4 * components, 4};
    }

    // Braces, unlike arguments, are evaluated from left to right by every compiler.
    static void put(std::vector<float>& field, int row, doorstep::Vec3 value) {
        float* at = field.data() + 3 * row;
        at[0] = value.x;
        at[1] = value.y;
        at[2] = value.z;
    }

    // Agents face each other, a few metres apart, between cubes in the air and walls. The last static is unused.
    // Buttons, whose tops are in one plane, do not overlap: the visible one would be undefined.
    void fill(int world) {
        for (int i = 0; i < kBodies; ++i) {
            const int row = world * kBodies + i;
            const bool agent = i < kAgents;
            body_kinds[row] = agent ? DS_ENTITY_AGENT : DS_ENTITY_CUBE;
            const float y = i == 0 ? -3.f : i == 1 ? 3.f : draws.between(-5.f, 5.f);
            put(body_positions, row, {draws.between(-2.f, 2.f), y, agent ? 0.f : draws.between(0.5f, 3.f)});
            const doorstep::Vec3 size{draws.between(0.3f, 2.f), draws.between(0.3f, 2.f), draws.between(0.3f, 2.f)};
            put(body_sizes, row, agent ? doorstep::Vec3{2.f, 2.f, 2.f} : size);
            const float angle = (i == 1 ? 3.14159f : 0.f) + draws.between(-0.3f, 0.3f) + (agent ? 0.f : 1.f);
            const float x = agent ? 0.f : draws.between(-1.f, 1.f), z = agent ? 1.f : draws.between(-1.f, 1.f);
            const float w = cosf(0.5f * angle), s = sinf(0.5f * angle) / sqrtf(x * x + z * z);
            float* rotation = body_rotations.data() + 4 * row;
            rotation[0] = w;
            rotation[1] = x * s;
            rotation[2] = 0.f;
            rotation[3] = z * s;
        }
        for (int i = 0; i < kStatics; ++i) {
            const int row = world * kStatics + i;
            static_kinds[row] = i == 3 ? DS_ENTITY_NONE : i == 2 ? DS_ENTITY_DOOR : DS_ENTITY_WALL;
            put(static_positions, row,
                {draws.between(-8.f, 8.f), draws.between(-9.f, 9.f), draws.between(-0.5f, 0.5f)});
            put(static_sizes, row, {draws.between(0.5f, 6.f), draws.between(0.2f, 1.f), draws.between(1.f, 3.f)});
        }
        for (int i = 0; i < kButtons; ++i) {
            const int row = world * kButtons + i;
            const float column = 3.f * static_cast<float>(i - 1);
            put(button_positions, row, {column + draws.between(-0.8f, 0.8f), draws.between(-4.f, 4.f), 0.f});
            button_pressed[row] = i & 1;
        }
    }

    Draws draws{7};
};
