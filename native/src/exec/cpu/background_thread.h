// One thread that runs jobs for asynchronous steps. It is created when first needed.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include <atomic>

namespace doorstep {

class BackgroundThread {
public:
    using Job = void (*)(void* context);

    BackgroundThread() = default;
    ~BackgroundThread() { stop(); }
    BackgroundThread(const BackgroundThread&) = delete;
    BackgroundThread& operator=(const BackgroundThread&) = delete;

    // Makes sure that the thread exists. False if the operating system refuses it.
    bool start();
    // Waits for a posted job, then ends and joins the thread.
    void stop();
    // In a forked child, where the thread does not exist. No job may be running.
    void forget_thread() { started_ = false; }

    // Runs job(context) on the thread. The previous job must have ended.
    void post(Job job, void* context);

private:
    static void* enter(void* self);

    pthread_t thread_{};
    bool started_ = false;
    Job job_ = nullptr;  // null: the thread shall end
    void* context_ = nullptr;
    std::atomic<uint32_t> posts_{0};
};

}  // namespace doorstep
