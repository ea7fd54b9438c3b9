// Running a part of a test in a child process, to check how it ends.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

constexpr int kHung = -1;

// The thread sanitizer does not support threads started in the child of a process that had threads. The address
// sanitizer's allocator stays locked in the child if a thread of the parent was inside it.
#ifdef DS_SANITIZED
constexpr bool kCanStartThreadsInChild = false;
#else
constexpr bool kCanStartThreadsInChild = true;
#endif

// The exit status of a process, 128 + signal if it was killed, or kHung (and it is ended) after 20 seconds.
inline int wait_for_process(pid_t process) {
    for (int tick = 0; tick < 2000; ++tick) {
        int status;
        if (waitpid(process, &status, WNOHANG) == process)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        const timespec pause{0, 10'000'000};
        nanosleep(&pause, nullptr);
    }
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    return kHung;
}

// Runs function() in a forked child that then ends through exit(), as programs do.
int run_in_child(const auto& function) {
    fflush(nullptr);
    const pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0) exit(function());
    return wait_for_process(process);
}
