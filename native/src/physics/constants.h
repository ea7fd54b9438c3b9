// Units: metres, seconds, kilograms, radians.
#pragma once

namespace doorstep {

constexpr float kTimeStep = 0.04f;
constexpr int kSubsteps = 4;
constexpr float kSubstep = 0.01f;
constexpr float kInverseSubstep = 100.f;
constexpr float kGravity = 9.8f;

constexpr float kRestitution = 0.3f;
// Slower approaches do not bounce: gravity alone gives such speeds in two substeps.
constexpr float kRestingSpeed = 2.f * kGravity * kSubstep;

// Pair coefficients are the mean of both bodies'; statics, agents and the floor have 0.5 and 0.5.
constexpr float kStaticFriction = 0.5f;
constexpr float kDynamicFriction = 0.5f;
constexpr float kCubeExtraDynamicFriction = 0.125f;  // half of 0.75 - 0.5: a cube's addition to the mean

// An agent is a box of 2 x 2 x 2 whose origin is its bottom centre and which only yaws.
constexpr float kAgentHalfExtent = 1.f;
constexpr float kAgentInverseMass = 1.f;
constexpr float kAgentInverseInertia = 1.5f;

// A cube is 3 x 3 x 3; its inertia is that of the unscaled 2 x 2 x 2 hull.
constexpr float kCubeHalfExtent = 1.5f;
constexpr float kCubeInverseMass = 0.075f;
constexpr float kCubeInverseInertia = 0.1125f;
constexpr float kCubeInertiaPerMass = 2.f / 3.f;

// The place where an agent holds a cube, in its own frame; the grabbing ray starts at this height, on the agent's axis.
constexpr float kHoldForward = 1.25f;
constexpr float kHoldHeight = 0.5f;

// Lengths and speeds below this count as zero: their direction would be noise.
constexpr float kTinyLength = 1e-9f;
constexpr float kTinyLength2 = kTinyLength * kTinyLength;

}  // namespace doorstep
