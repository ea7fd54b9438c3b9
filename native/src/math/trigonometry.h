// Sine, cosine and arc tangent with the same bits on every device: polynomials, no libm.
#pragma once

#include "math/base.h"
#include "math/vector.h"

namespace doorstep {

// For |angle| <= pi/4. Minimax polynomials, error below 2e-8.
DS_INLINE Heading sine_cosine(float angle) {
    const float z = angle * angle;
    const float sine = angle + angle * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
    const float cosine = 1.f - 0.5f * z +
                         z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
    return {cosine, sine};
}

// Angle of the point (x, y), within [-pi, pi]; 0 at the origin. Error below 3e-7. The ratio of the smaller to the
// larger coordinate is reduced to |u| <= tan(pi/8), where an odd polynomial of degree 9 suffices.
template <class Float>
DS_INLINE Float arc_tangent(Float y, Float x) {
    const Float ax = absolute(x), ay = absolute(y);
    const Float larger = maximum(ax, ay), smaller = minimum(ax, ay);
    const Float ratio = smaller / select(Float(0.f) < larger, larger, Float(1.f));
    const auto reduce = Float(0.41421356f) < ratio;
    const Float u = select(reduce, (ratio - Float(1.f)) / (ratio + Float(1.f)), ratio);
    const Float z = u * u;
    const Float p = ((Float(8.05374449538e-2f) * z - Float(1.38776856032e-1f)) * z + Float(1.99777106478e-1f)) * z -
                    Float(3.33329491539e-1f);
    Float angle = p * z * u + u;
    angle = select(reduce, angle + Float(0.78539816339f), angle);
    angle = select(ax < ay, Float(1.57079632679f) - angle, angle);
    angle = select(x < Float(0.f), Float(kPi) - angle, angle);
    return select(y < Float(0.f), -angle, angle);
}

}  // namespace doorstep
