// One thread that runs jobs handed to it, for steps that nobody waits for. It is made when first needed.
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
    // Lets a posted job end, then ends and joins the thread.
    void stop();
    // In a forked child: the thread is gone. No job may be running.
    void forget_thread() { started_ = false; }

    // Runs job(context) on the thread. The job before must have ended.
    void post(Job job, void* context);

private:
    static void* enter(void* self);

    pthread_t thread_{};
    bool started_ = false;
    Job job_ = nullptr;  // null: the thread is to end
    void* context_ = nullptr;
    std::atomic<uint32_t> posts_{0};
};

}  // namespace doorstep
