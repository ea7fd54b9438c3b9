// What is painted on the floor: rectangles, grids, stripes, discs. Edges are smoothed over the extent of a sample.
//
// Compiled for AVX2.
#pragma once

#include "doorstep_render.h"
#include "render/embree/lane_vector.h"

namespace doorstep {

inline bool is_on_floor(int32_t shape) { return shape >= DS_PICTURE_RECTANGLE && shape <= DS_PICTURE_GLOW; }

struct Mark {
    int32_t shape;
    float x, y, cosine, sine;      // of its centre and its turn
    float half_x, half_y;
    float bound;                   // no point farther away along x or y is painted
    Vec3 colour;                   // linear
    float opacity;
    float line_width, line_period;
};

// colour: linear, as displayed.
Mark mark_from(const ds_picture_object& object, Vec3 colour);

// Paints a mark on eight points of the floor; extent_x, extent_y: of a sample there.
void paint(const Mark& mark, const LaneVector& points, Lanes extent_x, Lanes extent_y, LaneVector& colours);

}  // namespace doorstep
