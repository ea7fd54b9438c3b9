// A model of a GPU that executes the kernels' PTX: what a step, a view and an action cost, and between which speeds an
// H100 or H200 would be. Predicted, never measured. Prints Markdown tables.
//
//     gpu_model [--list] [--stages] [--worlds=N] [--steps=N] [CASE...]
//
// CASE: the beginning of a case's name, such as "normal/2" or "drawn"; without any, all are executed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act_case.h"
#include "report.h"
#include "step_cases.h"
#include "view_cases.h"

namespace {

using namespace gpu_model;

struct Options {
    bool list = false, stages = false;
    int worlds = 0, steps = 3;  // 0 worlds: as many as suit the case
    std::vector<const char*> cases;

    bool chooses(const std::string& name) const {
        for (const char* beginning : cases)
            if (name.rfind(beginning, 0) == 0) return true;
        return cases.empty();
    }
    int worlds_or(int number) const { return worlds ? worlds : number; }
};

[[noreturn]] void refuse(const char* option) {
    fprintf(stderr, "gpu_model [--list] [--stages] [--worlds=N] [--steps=N] [CASE...]; got %s\n", option);
    exit(2);
}

// The number after the name, at least 1.
bool read_number(const char* option, const char* name, int* number) {
    if (strncmp(option, name, strlen(name)) != 0) return false;
    *number = atoi(option + strlen(name));
    if (*number < 1) refuse(option);
    return true;
}

Options read_options(int count, char** values) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const char* const option = values[i];
        if (strcmp(option, "--list") == 0) options.list = true;
        else if (strcmp(option, "--stages") == 0) options.stages = true;
        else if (option[0] != '-') options.cases.push_back(option);
        else if (!read_number(option, "--worlds=", &options.worlds) &&
                 !read_number(option, "--steps=", &options.steps))
            refuse(option);
    }
    return options;
}

// Executes the chosen cases, or lists their names.
class Cases {
public:
    explicit Cases(const Options& options) : options_(options) {}

    std::vector<Measured> measured;

    template <class Measure>
    void add(const std::string& name, const Measure& measure) {
        if (!options_.chooses(name)) return;
        if (options_.list) {
            printf("%s\n", name.c_str());
            return;
        }
        if (measured.empty()) print_cost_header();
        measured.push_back(measure());
        measured.back().name = name;
        print_costs(measured.back());
    }

private:
    const Options& options_;
};

std::string name_of(const char* scene, int agents) { return std::string(scene) + "/" + std::to_string(agents); }

void add_all(Cases& cases, const Options& options) {
    for (int scene = 0; scene < kStepScenes; ++scene)
        for (const int agents : {1, 2, 4, 8})
            cases.add(name_of(kSceneNames[scene], agents), [&] {
                const int worlds = options.worlds_or(agents <= 2 ? 256 : 128);
                return measure_steps(static_cast<StepScene>(scene), agents, worlds, options.steps);
            });
    for (const bool plays_levels : {false, true})
        for (const int agents : {1, 2, 8})
            cases.add(name_of(plays_levels ? "level_views" : "views", agents), [&] {
                return measure_views(plays_levels, agents, options.worlds_or(agents <= 2 ? 16 : 4));
            });
    cases.add("act/float32", [&] { return measure_act(4 * 32, DS_PRECISION_FLOAT32); });
    cases.add("act/bf16", [&] { return measure_act(4 * 32, DS_PRECISION_BFLOAT16); });
}

}  // namespace

int main(int count, char** values) {
    const Options options = read_options(count, values);
    Cases cases(options);
    add_all(cases, options);
    if (options.list) return 0;
    if (options.stages)
        for (const Measured& measured : cases.measured) print_stages(measured);
    print_rates(cases.measured);
}
