// The same C call through nanobind, and the call without Python.
#include <nanobind/nanobind.h>

#include <stdint.h>
#include <time.h>

namespace nb = nanobind;

namespace {

using Step = int (*)(uint64_t simulator);

struct Stepper {
    Step step;
    uint64_t simulator;

    void call() {
        int status;
        {
            nb::gil_scoped_release others_run;
            status = step(simulator);
        }
        if (status) throw nb::value_error("the step failed");
    }
};

double cpu_nanoseconds() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

NB_MODULE(nanobind_peer, module) {
    nb::class_<Stepper>(module, "Stepper")
        .def("__init__", [](Stepper* self, uintptr_t step, uint64_t simulator) {
            new (self) Stepper{reinterpret_cast<Step>(step), simulator};
        })
        .def("step", &Stepper::call);
    module.def("nanoseconds_per_step", [](uintptr_t step, uint64_t simulator, int calls) {
        const double begin = cpu_nanoseconds();
        for (int call = 0; call < calls; ++call) reinterpret_cast<Step>(step)(simulator);
        return (cpu_nanoseconds() - begin) / calls;
    });
}
