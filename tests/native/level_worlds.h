// Generated and invalid worlds for renderers, with any number of agents, and as many other things as any level has.
#pragma once

#include <math.h>

#include <vector>

#include "draws.h"
#include "render/cameras/renderers.h"

namespace doorstep {

// How many things a world has beside its agents.
struct LevelSlots { int cubes, statics, buttons; };
constexpr LevelSlots kReferenceSlots = {5, 12, 6};
constexpr LevelSlots kMostSlots = {DS_LEVEL_MAX_CUBES, DS_LEVEL_MAX_STATICS, DS_LEVEL_MAX_BUTTONS};

class LevelWorlds {
public:
    LevelWorlds(int num_agents, int num_worlds, uint64_t seed, LevelSlots slots = kReferenceSlots)
        : num_worlds_(num_worlds), slots_(slots), draws_{seed} {
        fields_.num_agents = num_agents;
        fields_.num_bodies = num_agents + slots.cubes;
        fields_.num_statics = slots.statics;
        fields_.num_buttons = slots.buttons;
        fields_.body_positions = make(body_positions, fields_.num_bodies, 3);
        fields_.body_rotations = make(body_rotations, fields_.num_bodies, 4);
        fields_.body_sizes = make(body_sizes, fields_.num_bodies, 3);
        fields_.body_kinds = make(body_kinds, fields_.num_bodies, 1);
        fields_.static_positions = make(static_positions, slots.statics, 3);
        fields_.static_sizes = make(static_sizes, slots.statics, 3);
        fields_.static_kinds = make(static_kinds, slots.statics, 1);
        fields_.button_positions = make(button_positions, slots.buttons, 3);
        fields_.button_pressed = make(button_pressed, slots.buttons, 1);
        for (int world = 0; world < num_worlds; ++world) {
            build_level(world);
            place_cubes(world);
            place_agents(world);
        }
    }

    const WorldFields& fields() const { return fields_; }
    int num_worlds() const { return num_worlds_; }

    std::vector<float> body_positions, body_rotations, body_sizes, static_positions, static_sizes, button_positions;
    std::vector<int32_t> body_kinds, static_kinds, button_pressed;

private:
    template <class Value>
    FieldView make(std::vector<Value>& values, int items, int components) {
        values.resize(static_cast<size_t>(num_worlds_ * items * components));
        return {reinterpret_cast<const char*>(values.data()), 4 * items * components, 4 * components, 4};
    }
    static void put(std::vector<float>& field, int row, float x, float y, float z) {
        float* at = field.data() + 3 * row;
        at[0] = x, at[1] = y, at[2] = z;
    }
    void put_static(int world, int i, int kind, float x, float y, float z, float size_x, float size_y, float size_z) {
        const int row = world * slots_.statics + i;
        static_kinds[static_cast<size_t>(row)] = kind;
        put(static_positions, row, x, y, z);
        put(static_sizes, row, size_x, size_y, size_z);
    }
    // angle: radians about the axis.
    void turn(int row, float angle, float x, float y, float z) {
        const float s = sinf(0.5f * angle) / sqrtf(x * x + y * y + z * z);
        float* rotation = body_rotations.data() + 4 * row;
        rotation[0] = cosf(0.5f * angle), rotation[1] = x * s, rotation[2] = y * s, rotation[3] = z * s;
    }

    void build_level(int world) {
        put_static(world, 0, DS_ENTITY_WALL, 0.f, -0.5f, 0.f, 22.f, 1.f, 5.f);
        put_static(world, 1, DS_ENTITY_WALL, 10.5f, 20.f, 0.f, 1.f, 40.f, 5.f);
        put_static(world, 2, DS_ENTITY_WALL, -10.5f, 20.f, 0.f, 1.f, 40.f, 5.f);
        for (int room = 0; room < 3; ++room) {
            const float y = 40.f / 3.f * static_cast<float>(room + 1) - 0.5f, door = draws_.between(5.f, 15.f);
            const float left = door - 10.f / 3.f, right = 20.f - door - 10.f / 3.f;
            put_static(world, 3 + room, DS_ENTITY_WALL, 0.5f * (-20.f + left), y, 0.f, left, 1.f, 4.375f);
            put_static(world, 6 + room, DS_ENTITY_WALL, 0.5f * (20.f - right), y, 0.f, right, 1.f, 4.375f);
            const float sunk = -1.2f * static_cast<float>(draws_.below(5));  // a moving door, or below the floor
            put_static(world, 9 + room, DS_ENTITY_DOOR, door - 10.f, y, sunk, 16.f / 3.f, 1.f, 4.375f);
        }
        // Blocks on the floor and beams above it
        for (int i = kReferenceSlots.statics; i < slots_.statics; ++i) {
            const float y = draws_.between(2.f, 36.f), z = i % 3 ? 0.f : draws_.between(1.5f, 6.f);
            put_static(world, i, i % 5 ? DS_ENTITY_WALL : DS_ENTITY_DOOR, draws_.between(-9.f, 9.f), y, z,
                       draws_.between(0.3f, 2.f), draws_.between(0.3f, 2.f), draws_.between(0.2f, 4.f));
        }
        // Each in a row of its own: of two that overlap the visible one would be undefined.
        for (int i = 0; i < slots_.buttons; ++i) {
            const int row = world * slots_.buttons + i, rows = (slots_.buttons + 1) / 2;
            const float length = 40.f / static_cast<float>(rows);
            const float y = length * static_cast<float>(i / 2) + draws_.between(2.f, fmaxf(2.1f, length - 2.3f));
            put(button_positions, row, draws_.between(1.f, 8.f) * (i % 2 ? 1.f : -1.f), y, 0.f);
            button_pressed[static_cast<size_t>(row)] = draws_.below(2) != 0;
        }
    }

    void place_cubes(int world) {
        for (int i = 0; i < slots_.cubes; ++i) {
            const int row = world * fields_.num_bodies + fields_.num_agents + i;
            body_kinds[static_cast<size_t>(row)] = DS_ENTITY_CUBE;
            put(body_sizes, row, 3.f, 3.f, 3.f);
            const bool tumbles = i < slots_.cubes / 2;
            put(body_positions, row, draws_.between(-8.f, 8.f), draws_.between(3.f, 36.f),
                tumbles ? draws_.between(1.f, 4.f) : 1.5f);
            if (tumbles) {
                turn(row, draws_.between(-3.f, 3.f), draws_.between(-1.f, 1.f), draws_.between(-1.f, 1.f), 0.3f);
            } else {
                turn(row, draws_.between(-3.f, 3.f), 0.f, 0.f, 1.f);
            }
        }
    }

    void place_agents(int world) {
        for (int agent = 0; agent < fields_.num_agents; ++agent) {
            const int row = world * fields_.num_bodies + agent;
            body_kinds[static_cast<size_t>(row)] = DS_ENTITY_AGENT;
            put(body_sizes, row, 2.f, 2.f, 2.f);
            put(body_positions, row, draws_.between(-9.f, 9.f), draws_.between(1.f, 39.f), 0.f);
            turn(row, draws_.between(-3.14f, 3.14f), 0.f, 0.f, 1.f);
            move_somewhere_hard(world, agent);
        }
    }

    // Most agents are placed where a renderer's optimisations could fail.
    void move_somewhere_hard(int world, int agent) {
        const int row = world * fields_.num_bodies + agent, cube = world * fields_.num_bodies + fields_.num_agents;
        float* at = body_positions.data() + 3 * row;
        const float* first = body_positions.data() + 3 * (row - agent);
        switch ((world + 3 * agent) % 12) {
            case 0: at[0] = 9.f; break;                                       // touches the right wall
            case 1: at[0] = 10.4f; break;                                     // its camera is in the wall
            case 2: at[0] = 9.99999f; break;                                  // its camera touches the wall
            case 3: at[1] = 80.f; break;                                      // beyond the level
            case 4: at[2] = 50.f; turn(row, -1.2f, 1.f, 0.2f, 0.f); break;    // high up, facing down
            case 5: at[2] = -4.f; break;                                      // below the floor
            case 6:                                                           // in the bounds of a tumbling cube
                at[0] = body_positions[static_cast<size_t>(3 * cube)] + 1.4f;
                at[1] = body_positions[static_cast<size_t>(3 * cube + 1)] + 1.4f;
                break;
            case 7:                                                           // touches the first agent
                if (agent) at[0] = first[0] + 2.f, at[1] = first[1], turn(row, 1.57f, 0.f, 0.f, 1.f);
                break;
            case 8:                                                           // overlaps it
                if (agent) at[0] = first[0] + 0.7f, at[1] = first[1] - 0.8f;
                break;
            case 9: at[1] = 12.2f; turn(row, 0.02f, 0.f, 0.f, 1.f); break;    // in front of a door
            case 10: turn(row, 0.f, 0.f, 0.f, 1.f); break;                    // aligned exactly with the world axes
            default: break;
        }
    }

    int num_worlds_;
    LevelSlots slots_;
    WorldFields fields_{};
    Draws draws_;
};

}  // namespace doorstep
