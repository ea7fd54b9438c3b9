// The sources of the shaders, assembled for the views that they draw.
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doorstep/rooms.h"
#include "render/cameras/renderers.h"

namespace doorstep {

// A growing text. Running out of memory is reported once, at the end.
class Text {
public:
    Text() = default;
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;
    ~Text() { free(bytes_); }

    void append(const char* text) { append(text, strlen(text)); }
    void append(const char* text, size_t length) {
        if (!reserve(length)) return;
        memcpy(bytes_ + length_, text, length);
        length_ += length;
        bytes_[length_] = '\0';
    }
    [[gnu::format(printf, 2, 3)]] void print(const char* format, ...) {
        char line[512];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
        append(line);
    }

    bool complete() const { return !failed_; }
    const char* data() const { return bytes_ ? bytes_ : ""; }
    size_t length() const { return length_; }

private:
    bool reserve(size_t more) {
        if (failed_) return false;
        if (length_ + more < capacity_) return true;
        const size_t capacity = 2 * (length_ + more) + 1024;
        auto* bytes = static_cast<char*>(realloc(bytes_, capacity));
        if (!bytes) {
            failed_ = true;
            return false;
        }
        bytes_ = bytes;
        capacity_ = capacity;
        return true;
    }

    char* bytes_ = nullptr;
    size_t length_ = 0, capacity_ = 0;
    bool failed_ = false;
};

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
