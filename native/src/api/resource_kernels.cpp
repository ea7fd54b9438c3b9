// CUDA resources for work: modules, kernels, graphs.
#include <string.h>

#include "api/resource.h"
#include "exec/cuda/images.h"
#include "exec/cuda/kernel_module.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/module.h"

using namespace doorstep;

// ---- Modules and kernels ----

ds_status ds_module_load(ds_resource context, const void* image, ds_resource* module) {
    if (!image) return fail_null("image");
    if (!module) return fail_null("module");
    Ref<Context> found = find_handle<Context>(context, "context");
    return found ? give_handle(Module::load(std::move(found), image), module) : last_status();
}

ds_status ds_module_load_builtin(ds_resource context, const char* name, ds_resource* module) {
    if (!name) return fail_null("name");
    if (!module) return fail_null("module");
    if (strcmp(name, "views") != 0) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "name", "the built-in module is \"views\"",
                    "there is no built-in module \"%s\"", name);
    }
    const Ref<Context> found = find_handle<Context>(context, "context");
    return found ? give_handle(load_module(found, kViewsModule), module) : last_status();
}

ds_status ds_kernel_get(ds_resource module, const char* name, ds_resource* kernel) {
    if (!name) return fail_null("name");
    if (!kernel) return fail_null("kernel");
    Ref<Module> found = find_handle<Module>(module, "module");
    return found ? give_handle(Kernel::get(std::move(found), name), kernel) : last_status();
}

ds_status ds_kernel_launch(ds_resource kernel, ds_resource stream, const uint32_t* grid, const uint32_t* block,
                           uint32_t shared_bytes, void** arguments) {
    if (!grid) return fail_null("grid");
    if (!block) return fail_null("block");
    const Ref<Kernel> launched = find_handle<Kernel>(kernel, "kernel");
    if (!launched) return last_status();
    const Ref<Stream> on = find_handle<Stream>(stream, "stream");
    if (!on) return last_status();
    LaunchShape shape;
    memcpy(shape.grid, grid, sizeof shape.grid);
    memcpy(shape.block, block, sizeof shape.block);
    shape.shared_bytes = shared_bytes;
    return launched->launch(*on, shape, arguments);
}

// ---- Graphs ----

ds_status ds_graph_begin_capture(ds_resource stream) {
    const Ref<Stream> found = find_handle<Stream>(stream, "stream");
    return found ? begin_capture(*found) : last_status();
}

ds_status ds_graph_end_capture(ds_resource stream, ds_resource* graph) {
    if (!graph) return fail_null("graph");
    const Ref<Stream> found = find_handle<Stream>(stream, "stream");
    return found ? give_handle(Graph::end_capture(*found), graph) : last_status();
}

ds_status ds_graph_instantiate(ds_resource graph, ds_resource* graph_exec) {
    if (!graph_exec) return fail_null("graph_exec");
    Ref<Graph> found = find_handle<Graph>(graph, "graph");
    return found ? give_handle(GraphExec::create(std::move(found)), graph_exec) : last_status();
}

ds_status ds_graph_launch(ds_resource graph_exec, ds_resource stream) {
    const Ref<GraphExec> launched = find_handle<GraphExec>(graph_exec, "graph_exec");
    if (!launched) return last_status();
    const Ref<Stream> on = find_handle<Stream>(stream, "stream");
    return on ? launched->launch(*on) : last_status();
}
