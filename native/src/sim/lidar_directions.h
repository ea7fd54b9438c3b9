// Unit directions of the lidar lines in the agent's frame: line i points 12 i degrees counter-clockwise from forward
// (+y). Literals, because steps do not call libm. Lane 15 repeats line 0.
#pragma once

#include "math/base.h"

namespace doorstep {

constexpr float kLidarDirectionX[16] = {
    0.f, -0.207911685f, -0.406736642f, -0.587785244f,
    -0.74314481f, -0.866025388f, -0.95105654f, -0.994521916f,
    -0.994521916f, -0.95105654f, -0.866025388f, -0.74314481f,
    -0.587785244f, -0.406736642f, -0.207911685f, 0.f};
constexpr float kLidarDirectionY[16] = {
    1.f, 0.978147626f, 0.91354543f, 0.809017003f,
    0.669130623f, 0.5f, 0.309017003f, 0.104528464f,
    -0.104528464f, -0.309017003f, -0.5f, -0.669130623f,
    -0.809017003f, -0.91354543f, -0.978147626f, 1.f};

}  // namespace doorstep
