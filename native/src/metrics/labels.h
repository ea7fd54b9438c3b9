// Labels of a series as text, as Prometheus writes them: name="value",... in ascending order of names.
#pragma once

#include <stddef.h>

#include "doorstep/policies_and_rollouts.h"

namespace doorstep {

// Letters, digits and underscores, no digit first. INVALID_ARGUMENT.
ds_status check_series_name(const char* name);
// INVALID_ARGUMENT if it is no such text.
ds_status check_labels(const char* labels);
// Copies labels without those of some names, which are separated by commas. to: as long as the labels.
void copy_labels_without(const char* labels, const char* names, char* to);
// Writes the labels of both, in order, to [sizeof ds_series_info::labels]. INVALID_ARGUMENT: they are too long, or a name
// is in both.
ds_status merge_labels(const char* a, const char* b, char* to);

}  // namespace doorstep
