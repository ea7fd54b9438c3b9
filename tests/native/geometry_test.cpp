// Unit tests of contacts, the floor, free flight and trigonometry, without a world.
#include <math.h>

#include <algorithm>

#include "check.h"
#include "draws.h"
#include "math/trigonometry.h"
#include "physics/box_box.h"
#include "physics/floor_contact.h"
#include "physics/pair_contact.h"
#include "physics/slide.h"
#include "sim/flight.h"

namespace {

using namespace doorstep;

BoxScratch scratch;

constexpr int kPairs = 3000;
constexpr double kRounding = 1e-4;  // of coordinates of a few metres, after a few dozen operations
constexpr Vec3 kUnit{1.f, 1.f, 1.f};

Heading heading_at(double yaw) { return {static_cast<float>(cos(yaw)), static_cast<float>(sin(yaw))}; }

// A rotation by `angle` about an axis that is 0 (x), 1 (y) or 2 (z).
Quat turn_about(int axis, double angle) {
    const float c = static_cast<float>(cos(angle / 2)), s = static_cast<float>(sin(angle / 2));
    return {c, axis == 0 ? s : 0.f, axis == 1 ? s : 0.f, axis == 2 ? s : 0.f};
}

void check_near(Vec3 left, Vec3 right, double tolerance) {
    CHECK_NEAR(left.x, right.x, tolerance);
    CHECK_NEAR(left.y, right.y, tolerance);
    CHECK_NEAR(left.z, right.z, tolerance);
}

Vec3 random_place(Draws& draws, float reach) {
    return {draws.between(-reach, reach), draws.between(-reach, reach), draws.between(-reach, reach)};
}

Box random_box(Draws& draws) {
    const Quat q{draws.between(0.1f, 1.f), draws.between(-1.f, 1.f), draws.between(-1.f, 1.f),
                 draws.between(-1.f, 1.f)};
    const Vec3 half{draws.between(0.5f, 2.f), draws.between(0.5f, 2.f), draws.between(0.5f, 2.f)};
    return turned_box(random_place(draws, 2.f), normalize(q), half);
}

Box random_upright_box(Draws& draws) {
    const Vec3 half{draws.between(0.5f, 2.f), draws.between(0.5f, 2.f), 1.f};
    const Vec3 place = random_place(draws, 2.f);
    return upright_box({place.x, place.y, 0.2f * place.z}, heading_at(draws.between(-3.f, 3.f)), half);
}

// ---- Overlap by projecting all corners, in double: the reference of the separating axes

struct Range { double low, high; };

Range project(const Box& box, const double axis[3]) {
    Range range{1e30, -1e30};
    for (int corner = 0; corner < 8; corner++) {
        const float sx = corner & 1 ? 1.f : -1.f, sy = corner & 2 ? 1.f : -1.f, sz = corner & 4 ? 1.f : -1.f;
        const Vec3 p = box.center + box.axis[0] * (sx * box.half.x) + box.axis[1] * (sy * box.half.y) +
                       box.axis[2] * (sz * box.half.z);
        const double along = axis[0] * p.x + axis[1] * p.y + axis[2] * p.z;
        range = {std::min(range.low, along), std::max(range.high, along)};
    }
    return range;
}

// How far one box must move along the axis (of any length) to leave the other; negative: the gap between them.
double overlap_along(const Box& a, const Box& b, Vec3 axis) {
    const double length = sqrt(double{axis.x} * axis.x + double{axis.y} * axis.y + double{axis.z} * axis.z);
    const double unit[3] = {axis.x / length, axis.y / length, axis.z / length};
    const Range ra = project(a, unit), rb = project(b, unit);
    return std::min(ra.high - rb.low, rb.high - ra.low);
}

// Over all 15 axes. least: the smallest overlap, negative if the boxes are apart. parting: the smallest along the axes
// that may separate them, see may_part_along().
struct Overlaps { double least = 1e30, parting = 1e30; };

Overlaps overlaps_of(const Box& a, const Box& b) {
    Overlaps found;
    const auto look_along = [&](Vec3 axis) {
        const float size = length(axis);
        if (size * size < kParallelEdges) return;
        const double overlap = overlap_along(a, b, axis);
        found.least = std::min(found.least, overlap);
        if (may_part_along(axis * (1.f / size), static_cast<float>(-overlap)))
            found.parting = std::min(found.parting, overlap);
    };
    for (const Vec3& axis : a.axis) look_along(axis);
    for (const Vec3& axis : b.axis) look_along(axis);
    for (const Vec3& from_a : a.axis)
        for (const Vec3& from_b : b.axis) look_along(cross(from_a, from_b));
    return found;
}

// ---- Box against box

// Boxes whose least overlap is vertical but large are excluded: they separate along other axes, see may_part_along(),
// across which their faces need not touch.
template <class MakeBox, class Touch>
void expect_touching_where_no_axis_separates(MakeBox make, Touch touch) {
    Draws draws{1};
    int touching = 0, apart = 0;
    for (int i = 0; i < kPairs; i++) {
        const Box a = make(draws), b = make(draws);
        const Overlaps overlaps = overlaps_of(a, b);
        if (fabs(overlaps.least) < kRounding || overlaps.parting > overlaps.least) continue;
        CHECK_EQUAL(touch(a, b), overlaps.least > 0);
        (overlaps.least > 0 ? touching : apart)++;
    }
    CHECK(touching > kPairs / 4 && apart > kPairs / 20);
}

LAW(boxes_touch_where_no_axis_separates_them) {
    Manifold manifold;
    expect_touching_where_no_axis_separates(random_box,
                                            [&](auto& a, auto& b) { return box_contact(a, b, scratch, manifold); });
    expect_touching_where_no_axis_separates(random_upright_box, [&](auto& a, auto& b) {
        return upright_contact(a, b, manifold) != Overlap::kNone;
    });
}

LAW(the_normal_is_an_axis_of_least_overlap_and_no_point_is_deeper) {
    Draws draws{3};
    for (int i = 0; i < kPairs; i++) {
        const Box a = random_box(draws), b = random_box(draws);
        Manifold manifold;
        if (!box_contact(a, b, scratch, manifold)) continue;
        const double along = overlap_along(a, b, manifold.normal), margin = kEdgeMargin + kRounding;
        CHECK(along <= overlaps_of(a, b).parting + margin);
        CHECK_NEAR(length(manifold.normal), 1.0, kRounding);
        CHECK(manifold.count >= 1 && manifold.count <= 4);
        for (int k = 0; k < manifold.count; k++) CHECK(manifold.depth[k] > 0.f && manifold.depth[k] <= along + margin);
    }
}

LAW(swapping_the_boxes_turns_the_normal_around) {
    Draws draws{4};
    for (int i = 0; i < kPairs; i++) {
        const Box a = random_box(draws), b = random_box(draws);
        Manifold one, other;
        const bool touching = box_contact(a, b, scratch, one);
        CHECK_EQUAL(box_contact(b, a, scratch, other), touching);
        if (!touching) continue;
        CHECK_EQUAL(one.count, other.count);
        check_near(one.normal, -other.normal, kRounding);
        for (int k = 0; k < one.count; k++) {
            check_near(one.point[k], other.point[k], kRounding);
            CHECK_NEAR(one.depth[k], other.depth[k], kRounding);
        }
    }
}

// Rotates everything by one yaw and moves it by one step along the floor.
struct FloorMotion {
    Heading heading;
    Vec3 step;
    Vec3 place(Vec3 p) const { return rotate(heading, p) + step; }
    Box place(Box box) const {
        for (Vec3& axis : box.axis) axis = rotate(heading, axis);
        box.center = place(box.center);
        return box;
    }
};

void check_moved(const Manifold& before, const Manifold& after, const FloorMotion& motion) {
    CHECK_EQUAL(before.count, after.count);
    check_near(rotate(motion.heading, before.normal), after.normal, kRounding);
    for (int k = 0; k < before.count; k++) {
        check_near(motion.place(before.point[k]), after.point[k], kRounding);
        CHECK_NEAR(before.depth[k], after.depth[k], kRounding);
    }
}

LAW(turning_both_boxes_turns_the_contact) {
    Draws draws{5};
    for (int i = 0; i < kPairs; i++) {
        const FloorMotion motion{heading_at(draws.between(-3.f, 3.f)), {draws.between(-3.f, 3.f), 1.f, 0.f}};
        const Box a = random_box(draws), b = random_box(draws);
        Manifold before, after;
        const bool touching = box_contact(a, b, scratch, before);
        CHECK_EQUAL(box_contact(motion.place(a), motion.place(b), scratch, after), touching);
        if (touching) check_moved(before, after, motion);

        const Box c = random_upright_box(draws), d = random_upright_box(draws);
        const Overlap overlap = upright_contact(c, d, before);
        CHECK(upright_contact(motion.place(c), motion.place(d), after) == overlap);
        if (overlap == Overlap::kContact) check_moved(before, after, motion);
    }
}

// Boxes of side 2, their centres 1.8 apart along x and 0.5 along y: b's side at 0.8, a's at 1, and 1.5 m in common.
LAW(two_sides_meet_in_a_rectangle) {
    const Box a = upright_box({0.f, 0.f, 1.f}, {1.f, 0.f}, kUnit);
    const Box b = upright_box({1.8f, 0.5f, 1.f}, {1.f, 0.f}, kUnit);
    Manifold upright, general;
    CHECK(upright_contact(a, b, upright) == Overlap::kContact && box_contact(a, b, scratch, general));
    for (const Manifold& manifold : {upright, general}) {
        check_near(manifold.normal, {-1.f, 0.f, 0.f}, 1e-6);
        CHECK_EQUAL(manifold.count, 4);
        float min_y = 9.f, max_y = -9.f, min_z = 9.f, max_z = -9.f;
        for (int k = 0; k < 4; k++) {
            CHECK_NEAR(manifold.depth[k], 0.2, 1e-5);
            CHECK_NEAR(manifold.point[k].x, 0.9, 1e-5);
            min_y = std::min(min_y, manifold.point[k].y), max_y = std::max(max_y, manifold.point[k].y);
            min_z = std::min(min_z, manifold.point[k].z), max_z = std::max(max_z, manifold.point[k].z);
        }
        CHECK_NEAR(min_y, -0.5, 1e-5);
        CHECK_NEAR(max_y, 1.0, 1e-5);
        CHECK_NEAR(min_z, 0.0, 1e-5);
        CHECK_NEAR(max_z, 2.0, 1e-5);
    }
}

// Two boxes turned by 45 degrees about x and about y, one above the other: edges of height 1 - + sqrt(2) cross.
LAW(crossing_edges_meet_in_one_point) {
    const float height = 2.f * sqrtf(2.f) - 0.1f;
    const Box a = turned_box({0.f, 0.f, 0.f}, turn_about(0, M_PI / 4), kUnit);
    const Box b = turned_box({0.2f, 0.3f, height}, turn_about(1, M_PI / 4), kUnit);
    Manifold manifold;
    CHECK(box_contact(a, b, scratch, manifold));
    CHECK_EQUAL(manifold.count, 1);
    check_near(manifold.normal, {0.f, 0.f, -1.f}, 1e-5);
    CHECK_NEAR(manifold.depth[0], 0.1, 1e-5);
    check_near(manifold.point[0], {0.2f, 0.f, 0.5f * height}, 1e-5);
}

// ---- The floor

// A cube that fell at 1 m/s; at that speed this substep's motion explains an overlap of up to 1.2 cm.
using Body = BodyOf<ReferenceMaterial>;

Body falling_cube(float height, Quat rotation) {
    Body cube{};
    cube.position = cube.previous_position = {2.f, 3.f, height};
    cube.rotation = cube.previous_rotation = rotation;
    cube.approach_velocity = {0.f, 0.f, -1.f};
    refresh_box(cube);
    return cube;
}

// Its lowest point is below its centre, so that the cube is raised without rotating.
FloorContact raise_by_a_centimetre(float radius, Quat rotation) {
    FloorContact contact;
    Body cube = falling_cube(radius - 0.01f, rotation);
    CHECK(find_floor_contact(contact, cube));
    solve_cube_floor_position(contact, cube);
    CHECK_NEAR(contact.lambda, 0.01 / kCubeInverseMass, 1e-4);
    check_near(cube.position, {2.f, 3.f, radius}, 1e-5);
    CHECK_NEAR(cube.rotation.w * rotation.w + cube.rotation.x * rotation.x + cube.rotation.y * rotation.y +
                   cube.rotation.z * rotation.z,
               1.0, 1e-6);
    return contact;
}

LAW(a_flat_cube_stands_on_four_corners) {
    const FloorContact contact = raise_by_a_centimetre(1.5f, turn_about(2, 0.4));
    for (float depth : contact.depth) CHECK_NEAR(depth, 0.01, 1e-6);
    check_near(contact.anchor, {0.f, 0.f, -1.5f}, 1e-5);
}

// Turned by 45 degrees about x, the lowest edge is 1.5 sqrt(2) below the centre; both its corners bear the same.
LAW(a_cube_on_an_edge_stands_on_two_corners) {
    FloorContact contact = raise_by_a_centimetre(1.5f * sqrtf(2.f), turn_about(0, M_PI / 4));
    std::sort(contact.depth, contact.depth + 4);
    CHECK_NEAR(contact.depth[1], 0.0, 1e-6);
    CHECK_NEAR(contact.depth[2], 0.01, 1e-5);
    CHECK_NEAR(contact.depth[3], 0.01, 1e-5);
    CHECK_NEAR(contact.anchor.x, 0.0, 1e-5);
}

// On a corner the anchor is that corner, half a diagonal away: 1.5 sqrt(3).
LAW(a_cube_on_a_corner_stands_on_it_alone) {
    const Quat diagonal_down = turn_about(0, atan(1 / sqrt(2.0))) * turn_about(1, M_PI / 4);
    const FloorContact contact = raise_by_a_centimetre(1.5f * sqrtf(3.f), diagonal_down);
    CHECK_NEAR(contact.depth_sum, 0.01, 1e-5);
    for (float coordinate : {contact.anchor.x, contact.anchor.y, contact.anchor.z})
        CHECK_NEAR(fabsf(coordinate), 1.5, 1e-5);
}

// Half a metre deep, at rest: the cube is moved out at once, and the velocity pass removes what the margin adds.
LAW(an_overlap_that_motion_has_not_made_parts_without_speed) {
    FloorContact contact;
    Body cube = falling_cube(1.f, {1.f, 0.f, 0.f, 0.f});
    cube.approach_velocity = {0.f, 0.f, 0.f};
    CHECK(find_floor_contact(contact, cube));
    solve_cube_floor_position(contact, cube);
    CHECK_NEAR(cube.position.z, 1.5, 1e-5);
    derive_velocity(cube);
    CHECK_NEAR(cube.velocity.z, 3.0, 1e-3);  // 3 cm, the margin of old_overlap(), in a substep
    solve_cube_floor_velocity(contact, cube);
    CHECK_NEAR(cube.velocity.z, 0.0, 1e-5);
}

// The friction at four corners acts at once: a cube that slides along its side neither turns nor swerves.
LAW(friction_on_the_floor_stops_a_slow_cube_straight) {
    FloorContact contact;
    Body cube = falling_cube(1.49f, {1.f, 0.f, 0.f, 0.f});
    CHECK(find_floor_contact(contact, cube));
    solve_cube_floor_position(contact, cube);
    cube.velocity = {0.1f, 0.f, 0.f};
    rub_on_floor(contact, cube, true);
    CHECK_NEAR(cube.velocity.y, 0.0, 1e-7);
    CHECK_NEAR(cube.spin.x, 0.0, 1e-7);
    CHECK_NEAR(cube.spin.z, 0.0, 1e-7);
    // Each of the four passes leaves 15% of the speed of the lower face
    CHECK_NEAR(cube.velocity.x - 1.5f * cube.spin.y, 0.1 * 0.15 * 0.15 * 0.15 * 0.15, 1e-6);
}

// ---- A wall, for an agent that slides (slide.h) and for one in the general solver (pair_contact.h)

// The same agent for both, moving and turning, and its pose before the substep.
struct SameAgent {
    SlideState<NarrowFloat> sliding;
    Body body;
};

SameAgent random_agent(Draws& draws) {
    const double yaw = draws.between(-3.f, 3.f);
    const Quat rotation = turn_about(2, yaw), previous = turn_about(2, yaw - draws.between(-0.02f, 0.02f));
    const Vec3 velocity{draws.between(-3.f, 3.f), draws.between(-3.f, 3.f), 0.f};
    const Vec3 position{draws.between(-4.f, 4.f), draws.between(-4.f, 4.f), 0.f};
    const float spin = draws.between(-3.f, 3.f);
    Body body{};
    body.yaws_only = true;
    body.position = position;
    body.rotation = rotation;
    body.previous_position = position - velocity * kSubstep;
    body.previous_rotation = previous;
    body.velocity = body.approach_velocity = velocity;
    body.spin = body.approach_spin = {0.f, 0.f, spin};
    refresh_box(body);
    SlideState<NarrowFloat> sliding{position.x, position.y, rotation.w, rotation.z, velocity.x, velocity.y, spin, 1.f,
                                    0.f, body.previous_position.x, body.previous_position.y, previous.w, previous.z};
    sliding.refresh_heading();
    return {sliding, body};
}

void check_same_pose(const SameAgent& agent) {
    check_near({agent.sliding.x.v, agent.sliding.y.v, 0.f}, agent.body.position, kRounding);
    CHECK_NEAR(agent.sliding.rotation_w.v, agent.body.rotation.w, kRounding);
    CHECK_NEAR(agent.sliding.rotation_z.v, agent.body.rotation.z, kRounding);
}

void check_same_contact(const WallContact<NarrowFloat>& planar, const PairContact& contact) {
    check_near({planar.normal_x.v, planar.normal_y.v, 0.f}, contact.normal, 1e-6);
    CHECK_NEAR(2.f * planar.depth_sum.v, contact.depth_sum, kRounding);  // each point twice, at two heights
    CHECK_NEAR(planar.anchor_x.v, contact.anchor_a.x, kRounding);
    CHECK_NEAR(planar.anchor_y.v, contact.anchor_a.y, kRounding);
    CHECK_NEAR(planar.wall_x.v, contact.anchor_b.x, kRounding);
    CHECK_NEAR(planar.wall_y.v, contact.anchor_b.y, kRounding);
    CHECK_NEAR(planar.approach_speed.v, contact.approach_speed, kRounding);
}

LAW(a_wall_acts_on_a_sliding_agent_as_in_the_general_solver) {
    Draws draws{8};
    int touching = 0, apart = 0, stuck = 0;
    for (int i = 0; i < 40 * kPairs; i++) {
        SameAgent agent = random_agent(draws);
        const SlideWall<NarrowFloat> wall{draws.between(-4.f, 4.f), draws.between(-4.f, 4.f), draws.between(0.2f, 3.f),
                                          draws.between(0.2f, 3.f)};
        const Box solid = upright_box({wall.x.v, wall.y.v, 1.5f}, {1.f, 0.f}, {wall.half_x.v, wall.half_y.v, 1.5f});
        const double overlap = overlaps_of(agent.body.box, solid).least;
        if (fabs(overlap) < kRounding || overlap > 0.03) continue;  // a margin of old_overlap(), which only one removes
        WallContact<NarrowFloat> planar;
        Manifold manifold;
        find_wall_contact(agent.sliding, wall, planar);
        CHECK_EQUAL(any(planar.touching), overlap > 0);
        CHECK_EQUAL(upright_contact(agent.body.box, solid, manifold) == Overlap::kContact, overlap > 0);
        (overlap > 0 ? touching : apart)++;
        if (overlap < 0) continue;
        PairContact contact;
        prepare_contact(manifold, agent.body, StaticPartner{}, contact);
        check_same_contact(planar, contact);

        const Vec3 before = agent.body.position;
        solve_wall_position(agent.sliding, planar);
        solve_contact_position(contact, agent.body, StaticPartner{});
        check_same_pose(agent);
        CHECK_NEAR(planar.lambda.v, contact.lambda, kRounding);
        const Vec3 moved = agent.body.position - before;
        stuck += fabsf(contact.normal.x * moved.y - contact.normal.y * moved.x) > 1e-5f;

        agent.sliding.refresh_heading();
        solve_wall_velocity(agent.sliding, planar);
        solve_contact_velocity(contact, agent.body, StaticPartner{});
        check_near({agent.sliding.velocity_x.v, agent.sliding.velocity_y.v, 0.f}, agent.body.velocity, 10 * kRounding);
        CHECK_NEAR(agent.sliding.spin.v, agent.body.spin.z, 10 * kRounding);
    }
    CHECK(touching > 300 && apart > kPairs);
    CHECK(stuck > 30);  // by static friction
}

// ---- Free flight

// The table has motion in the agent's frame; the kernel rotates and moves it to the agent's pose.
LAW(without_walls_an_agent_slides_as_the_table_of_flights_says) {
    FlightTable table;
    make_flight_table(table);
    Draws draws{6};
    for (int i = 0; i < 500; i++) {
        SlideBatch<WideFloat> batch{};
        Action actions[8];
        float yaws[8];
        for (int lane = 0; lane < 8; lane++) {
            actions[lane] = {static_cast<int32_t>(draws.below(5)), static_cast<int32_t>(draws.below(8)),
                             static_cast<int32_t>(draws.below(5)), 0};
            yaws[lane] = draws.between(-3.f, 3.f);
            const Quat rotation = turn_about(2, yaws[lane]);
            const Vec3 force = force_of(actions[lane], heading_at(yaws[lane]));
            batch.rotation_w[lane] = rotation.w, batch.rotation_z[lane] = rotation.z;
            batch.force_x[lane] = force.x, batch.force_y[lane] = force.y, batch.torque[lane] = torque_of(actions[lane]);
        }
        slide_batch(batch, 0);
        for (int lane = 0; lane < 8; lane++) {
            const Flight& flight = table.flights[flight_of(actions[lane])];
            const Vec3 moved = rotate(heading_at(yaws[lane]), Vec3{flight.x, flight.y, 0.f});
            const Quat turned = turn_about(2, yaws[lane]) * Quat{flight.w, 0.f, 0.f, flight.z};
            check_near({batch.x[lane], batch.y[lane], 0.f}, moved, 2e-6);
            CHECK_NEAR(batch.rotation_w[lane], turned.w, 2e-6);
            CHECK_NEAR(batch.rotation_z[lane], turned.z, 2e-6);
        }
    }
}

// ---- Trigonometry

// Of any length: a unit, or not finite. Squares that are denormal would give lengths of a half to two.
LAW(a_normalised_rotation_is_a_unit_or_not_finite) {
    for (float size = 1e-30f; size < 1e30f; size *= 1.7f) {
        const float squares = length2(renormalize(Quat{size, 0.3f * size, -0.2f * size, 0.7f * size}));
        if (size > 1e-18f && size < 1e19f) CHECK_NEAR(squares, 1.f, 1e-6);
        else CHECK(may_be_unit(squares) || squares == 0.f);  // not finite, or zero where squares overflowed
    }
}

LAW(sine_and_cosine_keep_their_word) {
    constexpr double kError = 2e-8, kUlp = 6e-8;  // of the polynomials, and of a result below 1
    for (int i = -20000; i <= 20000; i++) {
        const float angle = static_cast<float>(M_PI / 4 * i / 20000);
        const Heading found = sine_cosine(angle);
        CHECK_NEAR(found.sine, sin(double{angle}), kError + kUlp);
        CHECK_NEAR(found.cosine, cos(double{angle}), kError + kUlp);
    }
}

LAW(the_arc_tangent_keeps_its_word) {
    for (int i = -20000; i <= 20000; i++) {
        const double angle = M_PI * i / 20000;
        for (float radius : {1e-3f, 1.f, 37.f, 1e4f}) {
            const float x = radius * static_cast<float>(cos(angle)), y = radius * static_cast<float>(sin(angle));
            CHECK_NEAR(arc_tangent(NarrowFloat(y), NarrowFloat(x)).v, atan2(double{y}, double{x}), 3e-7);
        }
    }
    CHECK_NEAR(arc_tangent(NarrowFloat(0.f), NarrowFloat(0.f)).v, 0.0, 0.0);
}

}  // namespace
