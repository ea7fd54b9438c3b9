#include "render/api/core.h"

namespace doorstep {
namespace {

const ds_api* table = nullptr;

}  // namespace

const ds_api& core() { return *table; }
bool has_core() { return table != nullptr; }
void set_core(const ds_api* api) { table = api; }

}  // namespace doorstep
