// One world: everything that determines its future, in one block of plain data.
//
// Bodies, statics and buttons are structures of arrays, padded to lanes of 8, so that one vector contains one
// coordinate of all of them. Buttons and bodies share the position arrays ("things"), because observations index both.
// Unused slots have kind 0 and are at kNowhere, where nothing touches them.
#pragma once

#include "math/vector.h"
#include "physics/grab_joint.h"
#include "sim/constants.h"
#include "sim/terms.h"

namespace doorstep {

constexpr float kNowhere = 1e9f;
constexpr int kLanes = 8;

// The thing shown in one observation slot of a room: an index into the position arrays, or none.
constexpr uint8_t kEmptySlot = 255;

// ---- How many agents a world has

// From Least to Most: a constant, which takes no memory, if these are the same.
template <int Least, int Most = Least>
struct AgentCount {
    static constexpr int kLeast = Least, kMost = Most;
    static constexpr bool kIsConstant = false;
    int32_t count;

    // Clamped when it is used, as DoorRows::panel_of()
    DS_METHOD int num_agents() const { return clamp(count, Least, Most); }
    DS_METHOD bool has_agents(int number) const { return count == number; }
    DS_METHOD void set_agents(int number) { count = number; }
};
template <int Count>
struct AgentCount<Count, Count> {
    static constexpr int kLeast = Count, kMost = Count;
    static constexpr bool kIsConstant = true;

    static DS_METHOD constexpr int num_agents() { return Count; }
    static DS_METHOD constexpr bool has_agents(int number) { return number == Count; }
    DS_METHOD void set_agents(int number) { DS_ASSERT(number == Count); }
};

// ---- The parts of a world. A stage of a step takes the parts that it writes. Agents: the most of the kind of worlds.

// Buttons and bodies. Positions in metres: bottom centre of agents and buttons, centre of cubes. Bodies: agents, then
// cubes. Rows of positions contain the buttons first, the other rows only bodies.
template <int Agents, int BodyLanes, int ButtonLanes>
struct BodyRows {
    static constexpr int kMostAgents = Agents, kButtonLanes = ButtonLanes;
    static constexpr int kThings = ButtonLanes + BodyLanes;

    float x[kThings], y[kThings], z[kThings];
    float rotation_w[BodyLanes], rotation_x[BodyLanes], rotation_y[BodyLanes], rotation_z[BodyLanes];
    float velocity_x[BodyLanes], velocity_y[BodyLanes], velocity_z[BodyLanes];
    float spin_x[BodyLanes], spin_y[BodyLanes], spin_z[BodyLanes];
    // Their bounds at these poses, updated by all code that moves them
    float min_x[BodyLanes], max_x[BodyLanes], min_y[BodyLanes], max_y[BodyLanes], min_z[BodyLanes];
    int32_t kind[BodyLanes];

    DS_METHOD Vec3 position(int i) const {
        DS_ASSERT(i >= 0 && i < BodyLanes);
        return {x[ButtonLanes + i], y[ButtonLanes + i], z[ButtonLanes + i]};
    }
    DS_METHOD void set_position(int i, Vec3 p) {
        DS_ASSERT(i >= 0 && i < BodyLanes);
        x[ButtonLanes + i] = p.x;
        y[ButtonLanes + i] = p.y;
        z[ButtonLanes + i] = p.z;
    }
    DS_METHOD Quat rotation(int i) const { return {rotation_w[i], rotation_x[i], rotation_y[i], rotation_z[i]}; }
    DS_METHOD void set_rotation(int i, Quat q) {
        rotation_w[i] = q.w;
        rotation_x[i] = q.x;
        rotation_y[i] = q.y;
        rotation_z[i] = q.z;
    }
    DS_METHOD Vec3 velocity(int i) const { return {velocity_x[i], velocity_y[i], velocity_z[i]}; }
    DS_METHOD void set_velocity(int i, Vec3 v) {
        velocity_x[i] = v.x;
        velocity_y[i] = v.y;
        velocity_z[i] = v.z;
    }
    DS_METHOD Vec3 spin(int i) const { return {spin_x[i], spin_y[i], spin_z[i]}; }
    DS_METHOD void set_spin(int i, Vec3 v) {
        spin_x[i] = v.x;
        spin_y[i] = v.y;
        spin_z[i] = v.z;
    }
    DS_METHOD Heading heading(int agent) const {
        DS_ASSERT(agent >= 0 && agent < Agents);
        return heading_of(rotation_w[agent], rotation_z[agent]);
    }
    DS_METHOD bool at_rest(int i) const {
        return velocity_x[i] == 0.f && velocity_y[i] == 0.f && velocity_z[i] == 0.f && spin_x[i] == 0.f &&
               spin_y[i] == 0.f && spin_z[i] == 0.f;
    }
};

// Walls and doors: axis-aligned boxes, bottom centre and full extents, metres.
template <int Lanes>
struct StaticRows {
    float x[Lanes], y[Lanes], z[Lanes];
    float size_x[Lanes], size_y[Lanes], size_z[Lanes];
    int32_t kind[Lanes];
};

template <int Lanes>
struct ButtonRows {
    int32_t pressed[Lanes];
    int32_t door[Lanes];
};

template <int Count, int StaticLanes>
struct DoorRows {
    int32_t open[Count];
    int32_t panel[Count];       // the static that moves
    int32_t persistent[Count];  // stays open once opened

    // Clamped when it is used: another thread may have written it since the checks at the start of the step
    DS_METHOD int panel_of(int door) const {
        static_assert((StaticLanes & (StaticLanes - 1)) == 0, "the mask keeps an index in range");
        DS_ASSERT(door >= 0 && door < Count);
        return panel[door] & (StaticLanes - 1);
    }
};

// The things observed in each room: indices into the rows of positions, or kEmptySlot.
template <int Rooms>
struct RoomSlots {
    uint8_t thing[Rooms][kEntitySlots];
    uint8_t padding[4 - Rooms * kEntitySlots % 4];  // zero
};

// What each agent holds.
template <int Agents>
struct GrabRows {
    int32_t held[Agents];    // body, or -1
    int32_t joined[Agents];  // body that the joint was made for, or -1; differs from `held` after an edit
    GrabJoint joint[Agents];
};

template <int Agents>
struct ProgressRows {
    float max_y[Agents];           // largest y of this episode
    float episode_return[Agents];  // sum of its rewards
};

struct Sleep {
    uint32_t cubes;  // bit per body: a cube at rest, not simulated until something hits it
};

struct Identity {
    uint32_t seed, global_index;
    uint32_t episode_index;  // of the current level
    uint32_t age;            // steps since creation
};

// The capacities of worlds that play the reference's levels only.
struct ReferenceCapacity {
    static constexpr bool kPlaysLevels = false;
    static constexpr int kRooms = doorstep::kRooms, kDoors = kRooms, kButtons = 2 * kRooms, kStatics = 12;
    static constexpr int cubes(int agents) { return agents == 1 ? 6 : 5; }  // a lone agent gets one, in the first room
    using Terms = ReferenceTerms;
};

// Those of worlds that play any levels.
struct LevelCapacity {
    static constexpr bool kPlaysLevels = true;
    static constexpr int kRooms = DS_LEVEL_MAX_ROOMS, kDoors = DS_LEVEL_MAX_DOORS, kButtons = DS_LEVEL_MAX_BUTTONS;
    static constexpr int kStatics = DS_LEVEL_MAX_STATICS;
    static constexpr int cubes(int) { return DS_LEVEL_MAX_CUBES; }
    using Terms = LevelTerms;
};

constexpr int padded_to_lanes(int count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Of up to `Agents` agents.
template <int Agents, class Capacity>
struct WorldParts {
    static constexpr int kMostAgents = Agents;
    static constexpr bool kPlaysLevels = Capacity::kPlaysLevels;
    static constexpr int kRooms = Capacity::kRooms;
    static constexpr int kCubes = Capacity::cubes(Agents);
    static constexpr int kMostBodies = kMostAgents + kCubes;
    static constexpr int kBodyLanes = padded_to_lanes(kMostBodies);
    static constexpr int kStatics = Capacity::kStatics;
    static constexpr int kStaticLanes = padded_to_lanes(kStatics);
    static constexpr int kButtons = Capacity::kButtons;
    static constexpr int kButtonLanes = padded_to_lanes(kButtons);
    static constexpr int kDoors = Capacity::kDoors;
    static constexpr int kThings = kButtonLanes + kBodyLanes;
    static_assert(kMostBodies <= 32 && kStatics <= 32 && kButtons <= 32 && kDoors <= 32, "sets of them are 32 bits");
    static_assert(kThings < kEmptySlot);

    using Bodies = BodyRows<kMostAgents, kBodyLanes, kButtonLanes>;
    using Statics = StaticRows<kStaticLanes>;
    using Buttons = ButtonRows<kButtonLanes>;
    using Doors = DoorRows<kDoors, kStaticLanes>;
    using Grabs = GrabRows<kMostAgents>;
    using Progress = ProgressRows<kMostAgents>;
    using Rooms = RoomSlots<kRooms>;

    Bodies bodies;
    Statics statics;
    Buttons buttons;
    Doors doors;
    Rooms rooms;
    Grabs grabs;
    Progress progress;
    Sleep sleep;
    Episode episode;
    Identity identity;
    WorldHealth health;

    static DS_METHOD int thing_of_body(int body) { return kButtonLanes + body; }
};

// The terms and the number of agents are bases, which take no memory if they are empty, in every compiler. Bodies are
// the agents, then the cubes; what a world of fewer agents than the most does not use comes last.
template <class Agents, class Capacity = ReferenceCapacity>
struct World : WorldParts<Agents::kMost, Capacity>, Capacity::Terms, Agents {
    using Parts = WorldParts<Agents::kMost, Capacity>;
    using Terms = typename Capacity::Terms;
    using AgentCount = Agents;

    DS_METHOD Terms& terms() { return *this; }
    DS_METHOD const Terms& terms() const { return *this; }

    DS_METHOD bool is_agent(int body) const { return body < this->num_agents(); }
    DS_METHOD int num_bodies() const { return this->num_agents() + Parts::kCubes; }
    DS_METHOD uint32_t cube_bits() const { return low_bits(Parts::kCubes) << this->num_agents(); }

    // The cube that an agent holds, or -1. Clamped as DoorRows::panel_of()
    DS_METHOD int held_by(int agent) const {
        DS_ASSERT(agent >= 0 && agent < this->num_agents());
        const int first = this->num_agents();
        const uint32_t cube = static_cast<uint32_t>(this->grabs.held[agent]) - static_cast<uint32_t>(first);
        return cube < static_cast<uint32_t>(Parts::kCubes) ? first + static_cast<int>(cube) : -1;
    }
};

// The compiled kinds of worlds, by their numbers.
template <int number>
struct CompiledWorld;
#define DS_COMPILED_WORLD(number, least, most, Capacity)    \
    template <>                                             \
    struct CompiledWorld<number> {                          \
        using W = World<AgentCount<least, most>, Capacity>; \
    };
DS_WORLD_KIND_TABLE(DS_COMPILED_WORLD)
#undef DS_COMPILED_WORLD

// Distance in memory from one world's block to the next; each begins a cache line.
template <class W>
constexpr int kBlockBytes = static_cast<int>((sizeof(W) + 63) / 64 * 64);

DS_INLINE Bounds body_bounds(bool is_agent, Vec3 p, Quat q) {
    if (is_agent || tilt_of(q) <= kExactlyUpright) {
        const Heading heading = heading_of(q.w, q.z);
        const float half = is_agent ? kAgentHalfExtent : kCubeHalfExtent;
        const float reach = half * (absolute(heading.cosine) + absolute(heading.sine));
        const float bottom = is_agent ? p.z : p.z - kCubeHalfExtent;
        return {p.x - reach, p.x + reach, p.y - reach, p.y + reach, bottom, bottom + 2.f * half};
    }
    const Vec3 reach = reach_of(turned_box(p, q, {kCubeHalfExtent, kCubeHalfExtent, kCubeHalfExtent}));
    return {p.x - reach.x, p.x + reach.x, p.y - reach.y, p.y + reach.y, p.z - reach.z, p.z + reach.z};
}

template <class Bodies>
DS_INLINE void refresh_bounds(Bodies& bodies, int body, bool is_agent) {
    const Bounds bounds = body_bounds(is_agent, bodies.position(body), bodies.rotation(body));
    bodies.min_x[body] = bounds.min_x;
    bodies.max_x[body] = bounds.max_x;
    bodies.min_y[body] = bounds.min_y;
    bodies.max_y[body] = bounds.max_y;
    bodies.min_z[body] = bounds.min_z;
}

// The layout is what saves contain and what hashes cover, as the golden hashes show: a change needs a new version of the
// save format.
constexpr size_t kReferenceWorldBytes[] = {1372, 1420, 1468, 2320};
template <class W>
constexpr size_t kSavedBytes =
    W::kPlaysLevels ? sizeof(typename W::Parts) + LevelTerms::kSavedBytes + (W::AgentCount::kIsConstant ? 0 : 4)
                    : kReferenceWorldBytes[W::AgentCount::kLeast - 1];
#define DS_HAS_SAVED_SIZE(number, ...) \
    static_assert(sizeof(CompiledWorld<number>::W) == kSavedBytes<CompiledWorld<number>::W>);
DS_WORLD_KIND_TABLE(DS_HAS_SAVED_SIZE)
#undef DS_HAS_SAVED_SIZE

}  // namespace doorstep
