#include "installed_driver.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "functions.h"
#include "launches.h"
#include "runtime/cuda/driver.h"

namespace stand_in {
namespace {

void* find_symbol(const char* name) {
    return strcmp(name, "cuGetProcAddress_v2") == 0 ? reinterpret_cast<void*>(&cuGetProcAddress_v2) : nullptr;
}

}  // namespace

void install(const Settings& settings) {
    replace_driver(settings);
    doorstep::reset_driver(find_symbol);
}

void fail_next(const char* function, doorstep::CUresult result) { driver().report.faults.push_back({function, 1, result}); }

int64_t alive(const char* kind) {
    const std::map<std::string, int64_t> live = driver().live();
    const auto found = live.find(kind);
    return found == live.end() ? 0 : found->second;
}

int64_t alive() {
    int64_t sum = 0;
    for (const auto& [kind, count] : driver().live()) sum += kind == "contexts" || kind == "modules" ? 0 : count;
    return sum;
}

int64_t retained(int device) { return driver().contexts[static_cast<size_t>(device)].retained; }

int64_t violations() {
    const std::vector<std::string>& all = driver().report.violations;
    for (const std::string& violation : all) fprintf(stderr, "%s\n", violation.c_str());
    return static_cast<int64_t>(all.size());
}

int64_t calls() { return static_cast<int64_t>(driver().report.calls.size()); }

int64_t count_calls(const char* function) {
    const std::vector<std::string>& calls = driver().report.calls;
    return std::count(calls.begin(), calls.end(), function);
}

int64_t first_call(const char* function) {
    const std::vector<std::string>& calls = driver().report.calls;
    const auto found = std::find(calls.begin(), calls.end(), function);
    return found == calls.end() ? -1 : found - calls.begin();
}

uint64_t make_foreign_stream(int device) {
    Stream stream;
    stream.name = "a foreign stream";
    stream.context = &driver().contexts[static_cast<size_t>(device)];
    return driver().streams.add(std::move(stream));
}

doorstep::Ref<doorstep::Module> load_module(const doorstep::Ref<doorstep::Context>& context) {
    using doorstep::Module;
    const bool loaded = Module::is_loaded(*context, 0) || !Module::load(*context, 0, kImage);
    return loaded ? Module::find(context, 0) : doorstep::Ref<Module>();
}

// ---- The kernels

int make_launch(const Launch& launch, const void*, Task* task) {
    task->what = launch.kernel;
    return kSuccess;
}

}  // namespace stand_in
