// Handles of metrics.
#pragma once

#include "metrics/store.h"
#include "runtime/handles.h"

namespace doorstep {

inline constinit HandleRegistry<MetricsStore> metrics_stores;
inline constinit HandleRegistry<Series> series_handles;

}  // namespace doorstep
