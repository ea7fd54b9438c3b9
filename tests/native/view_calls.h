// Calls of the ray caster with their own memory, drawn by different executors and compared to the byte.
#pragma once

#include <stdlib.h>

#include <vector>

#include "check.h"
#include "level_worlds.h"
#include "render/raycast/constants.h"

namespace doorstep {

constexpr float kTangentOf50Degrees = 1.1917536f;

inline CameraRig rig_of(int width, int height, float tangent_y) {
    return {width, height, tangent_y * static_cast<float>(width) / static_cast<float>(height), tangent_y,
            {0.f, 0.f, 1.5f}, {1.f, 0.f, 0.f, 0.f}};
}

// The output tensors.
struct PixelTensors {
    std::vector<uint8_t> rgb, segmentation;
    std::vector<float> depth, normals;

    void reset(int64_t views, const CameraRig& rig) {
        const auto pixels = static_cast<size_t>(views * rig.width * rig.height);
        rgb.assign(4 * pixels, 77);
        depth.assign(pixels, 77.f);
        segmentation.assign(2 * pixels, 77);
        normals.assign(3 * pixels, 77.f);
    }
    ViewTensors tensors() { return {rgb.data(), depth.data(), segmentation.data(), normals.data()}; }
    bool operator==(const PixelTensors&) const = default;
};

class ViewPixels : public PixelTensors {
public:
    ViewPixels(const LevelWorlds& worlds, const CameraRig& rig) : constants_(rig) {
        reset(worlds.num_worlds() * worlds.fields().num_agents, rig);
        views_ = {worlds.fields(), worlds.num_worlds(), rig, tensors()};
        memory_.resize(static_cast<size_t>(constants_.bytes()) + 64);
        char* aligned = memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64);
        constants_.write(aligned);
        call = constants_.call(views_, aligned);
    }
    ViewPixels(ViewPixels&&) = default;
    bool operator==(const ViewPixels& other) const { return PixelTensors::operator==(other); }

    ViewsCall call;

private:
    RaycastConstants constants_;
    Views views_;
    std::vector<char> memory_;
};

// Draws one lane at a time.
inline void draw_narrow(const ViewsCall& call) {
    with_limits(call.views.fields, [&](auto limits) {
        std::vector<DrawingMemory<decltype(limits)>> memory(1);
        for (int64_t world = 0; world < call.views.num_worlds; ++world)
            draw_world<NarrowFloat>(call, world, memory[0]);
    });
}

}  // namespace doorstep
