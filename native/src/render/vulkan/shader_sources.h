// The sources of the shaders, assembled for the views that they draw.
#pragma once

#include "doorstep.h"
#include "render/cameras/batch_renderer.h"
#include "render/vulkan/text.h"

namespace doorstep {

// A grid of tiles of one size: the render target contains many views.
struct TileGrid {
    uint32_t columns, rows;
};

// Offsets of the fields in a world's block, except the sizes of bodies, which are the same in all worlds.
struct WorldLayout {
    const char* first;  // the first byte of world 0 that is read
    int64_t world_stride;
    int64_t bytes;      // from `first`, of every world
    bool is_block;      // all fields have this stride
};

WorldLayout layout_of(const WorldFields& fields);

// Constants of the renderer: sizes, the camera, colours.
void write_constants(const Views& views, const Vec3* body_sizes, const TileGrid& tiles, Text* source);

// The shaders, each after the constants: compute (objects), vertex (boxes, agents), pixel (surface), compute (pixels).
void write_objects_shader(const Text& constants, Text* source);
void write_boxes_shader(const Text& constants, Text* source);
void write_agents_shader(const Text& constants, Text* source);
void write_surface_shader(const Text& constants, Text* source);
// material: a user's HLSL, called `name` in messages; null: the default material.
void write_pixels_shader(const Text& constants, const char* material, const char* name, Text* source);

}  // namespace doorstep
