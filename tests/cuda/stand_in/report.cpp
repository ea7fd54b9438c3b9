#include "report.h"

#include <stdarg.h>
#include <stdio.h>

namespace stand_in {
namespace {

constexpr size_t kLongestLog = 20000;  // further calls are not recorded

std::string quoted(const std::string& value) {
    std::string result = "\"";
    for (const char c : value) {
        if (c == '"' || c == '\\') result += '\\';
        result += c < ' ' ? ' ' : c;
    }
    return result + "\"";
}

std::string list(const std::vector<std::string>& values) {
    std::string result;
    for (const std::string& value : values) result += (result.empty() ? "" : ", ") + quoted(value);
    return "[" + result + "]";
}

}  // namespace

int Report::begin_call(const char* function) {
    if (calls_.size() < kLongestLog) calls_.push_back(function);
    for (Fault& fault : faults_) {
        if (!fault.function.empty() && fault.function != function) continue;
        if (--fault.calls_left != 0) continue;
        failed_ = function;
        has_failed_ = true;
        return fault.code;
    }
    return 0;
}

void Report::plan_fault(const char* function, int64_t nth, int code) { faults_.push_back({function, nth, code}); }

void Report::clear_calls() {
    calls_.clear();
    faults_.clear();
    failed_.clear();
    waits_ = bytes_ = 0;
}

std::string Report::to_json(const std::map<std::string, int64_t>& live, int64_t pending) const {
    std::string counts;
    for (const auto& [kind, count] : live)
        counts += text("%s\"%s\": %ld", counts.empty() ? "" : ", ", kind.c_str(), count);
    return text("{\"violations\": %s, \"live\": {%s}, \"pending\": %ld, \"calls\": %s, \"failed\": %s, \"waits\": %ld, "
                "\"bus_bytes\": %ld}",
                list(violations_).c_str(), counts.c_str(), pending, list(calls_).c_str(), quoted(failed_).c_str(),
                waits_, bytes_);
}

std::string text(const char* format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    std::string result(static_cast<size_t>(vsnprintf(nullptr, 0, format, arguments)), '\0');
    vsnprintf(result.data(), result.size() + 1, format, again);
    va_end(again);
    va_end(arguments);
    return result;
}

}  // namespace stand_in
