// The model's Markdown tables.
#pragma once

#include "measured.h"

namespace gpu_model {

void print_cost_header();
void print_costs(const Measured& measured);  // a row

// By stage, with the time that each limit of a device would allow for it alone.
void print_stages(const Measured& measured);

// Of all cases.
void print_rates(const std::vector<Measured>& cases);

}  // namespace gpu_model
