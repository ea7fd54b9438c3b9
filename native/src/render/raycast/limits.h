// The sizes of the ray caster's tables. Worlds that play the reference's levels only have tables of their own, because
// the fewer bytes of shared memory a view needs, the more views a GPU draws at a time.
#pragma once

#include "render/scene/scene.h"

namespace doorstep {

constexpr int kMaxMeshes = DS_MAX_AGENTS - 1;

// Surfaces are numbered: meshes, then these, then sides of boxes by their row in Faces.
enum Surface : uint32_t { kSkySurface = kMaxMeshes, kFloorSurface, kFirstFaceSurface };

template <int Objects>
struct SceneLimits {
    static constexpr int kObjects = Objects;
    static constexpr int kBoxes = (kObjects + 7) / 8 * 8;            // whole lanes
    static constexpr int kFaces = (3 * kObjects + 1 + 7) / 8 * 8;    // three sides of every box, and the floor
    static constexpr int kSurfaces = kFirstFaceSurface + kFaces;
    static_assert(kSurfaces <= 256, "the number of a surface fits into the highest byte of a pixel's word");
};

using ReferenceScene = SceneLimits<31>;
using LevelScene = SceneLimits<kMaxObjects>;

// Calls work(limits) with the smallest that worlds of these capacities fit; returns its result.
template <class Work>
DS_INLINE auto with_limits(const WorldFields& fields, const Work& work) {
    DS_ASSERT(object_count(fields) <= LevelScene::kObjects);
    return object_count(fields) <= ReferenceScene::kObjects ? work(ReferenceScene()) : work(LevelScene());
}

}  // namespace doorstep
