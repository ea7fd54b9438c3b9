// A growing text. Running out of memory is reported once, at the end.
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace doorstep {

class Text {
public:
    Text() = default;
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;
    ~Text() { free(bytes_); }

    void append(const char* text) { append(text, strlen(text)); }
    void append(const char* text, size_t length) {
        if (!reserve(length)) return;
        memcpy(bytes_ + length_, text, length);
        length_ += length;
        bytes_[length_] = '\0';
    }
    [[gnu::format(printf, 2, 3)]] void print(const char* format, ...) {
        char line[512];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
        append(line);
    }

    bool complete() const { return !failed_; }
    const char* data() const { return bytes_ ? bytes_ : ""; }
    size_t length() const { return length_; }

private:
    bool reserve(size_t more) {
        if (failed_) return false;
        if (length_ + more < capacity_) return true;
        const size_t capacity = 2 * (length_ + more) + 1024;
        auto* bytes = static_cast<char*>(realloc(bytes_, capacity));
        if (!bytes) {
            failed_ = true;
            return false;
        }
        bytes_ = bytes;
        capacity_ = capacity;
        return true;
    }

    char* bytes_ = nullptr;
    size_t length_ = 0, capacity_ = 0;
    bool failed_ = false;
};

}  // namespace doorstep
