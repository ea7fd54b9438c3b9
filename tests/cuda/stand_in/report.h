// The stand-in's records for the tests: violations of the driver's rules, calls made, calls to fail.
#pragma once

#include <stdint.h>

#include <map>
#include <string>
#include <vector>

namespace stand_in {

// Makes the n-th next call of a function (or of any, if the name is empty) return a code without effect.
struct Fault {
    std::string function;
    int64_t calls_left;
    int code;
};

class Report {
public:
    void violation(const std::string& message) { violations_.push_back(message); }

    // Records the call; returns the code it shall fail with, or 0.
    int begin_call(const char* function);

    // Whether a planned failure has happened: the object that the call should have ended may be live.
    bool has_failed() const { return has_failed_; }

    // What costs time on a real device, since clear_calls(): calls that wait for work, bytes that cross the bus.
    void count_wait() { ++waits_; }
    void count_bytes(uint64_t bytes) { bytes_ += static_cast<int64_t>(bytes); }

    const std::vector<std::string>& violations() const { return violations_; }
    const std::vector<std::string>& calls() const { return calls_; }
    const std::string& failed() const { return failed_; }

    void plan_fault(const char* function, int64_t nth, int code);
    void clear_calls();

    // The caller adds the live objects per kind, as JSON.
    std::string to_json(const std::map<std::string, int64_t>& live, int64_t pending) const;

private:
    std::vector<std::string> violations_;
    std::vector<std::string> calls_;
    std::vector<Fault> faults_;
    bool has_failed_ = false;
    int64_t waits_ = 0, bytes_ = 0;
    std::string failed_;  // the function of the latest planned failure
};

// printf into a string.
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace stand_in
