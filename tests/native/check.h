// The macros of the native tests. A failed check prints itself and ends the program.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include <thread>
#include <vector>

[[noreturn]] inline void fail_check(const char* file, int line, const char* what) {
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
    abort();
}

template <class Number>
struct Compared {
    Number left, right;
    const char *left_text, *right_text, *file;
    int line;

    void require(bool holds) const {
        if (holds) return;
        fprintf(stderr, "%s is %.19Lg, %s is %.19Lg\n", left_text, static_cast<long double>(left), right_text,
                static_cast<long double>(right));
        fail_check(file, line, left_text);
    }
    void check_equal() const { require(left == right); }
    void check_near(double tolerance) const { require(left - right <= tolerance && right - left <= tolerance); }
};
#define COMPARED(type, left, right) \
    Compared<type>{static_cast<type>(left), static_cast<type>(right), #left, #right, __FILE__, __LINE__}

#define CHECK(condition) (!(condition) ? fail_check(__FILE__, __LINE__, #condition) : void())
#define CHECK_EQUAL(left, right) COMPARED(long long, left, right).check_equal()
#define CHECK_NEAR(left, right, tolerance) COMPARED(double, left, right).check_near(tolerance)
#define RUN(law) (puts(#law), fflush(stdout), law())

// LAW(name) { ... } defines a law of a program that main.cpp runs, in the order of its files and of their lines.
struct Law {
    const char* name;
    void (*run)();
};

inline std::vector<Law>& laws() {
    static std::vector<Law> all;
    return all;
}

#define LAW(name)                                                                      \
    void name();                                                                       \
    [[maybe_unused]] const bool is_law_##name = (laws().push_back({#name, name}), true); \
    void name()

// What every law of the program must leave behind: called after each.
inline void (*check_after_law)() = [] {};

// A struct of the C API that knows its size, all else zero.
template <class Struct>
Struct sized() {
    Struct made{};
    made.struct_size = sizeof made;
    return made;
}

// Is joined at its end.
struct JoiningThread : std::thread {
    using std::thread::thread;
    JoiningThread(JoiningThread&&) = default;
    JoiningThread& operator=(JoiningThread&&) = default;
    ~JoiningThread() {
        if (joinable()) join();
    }
};

// Runs the same work in several threads to its end.
void run_in_threads(int count, const auto& work) {
    std::vector<JoiningThread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&work] { work(); });
}
