// Runs all laws of a program of several files.
#include "check.h"

int main() {
    for (const Law& law : laws()) {
        puts(law.name);
        fflush(stdout);
        law.run();
        check_after_law();
    }
}
