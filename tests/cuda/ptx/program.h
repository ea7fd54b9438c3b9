// Parses PTX text into instructions: the parts of the language (PTX ISA 8.8) that the kernels use.
#pragma once

#include <stdint.h>

#include <map>
#include <string>
#include <vector>

namespace ptx {

struct Thread;
struct Instruction;
using Operation = void (*)(Thread&, const Instruction&);

// The source or destination of a value.
struct Operand {
    enum Kind { kNone, kRegister, kImmediate, kGlobal, kShared, kLocal, kParameter, kArgument, kReturned, kThreadIndex,
                kBlockIndex, kBlockCount } kind = kNone;
    uint32_t slot = 0;    // register; number of the parameter of this function, or of the argument of a call
    uint64_t value = 0;   // immediate; address of a global; otherwise an offset that is added
};

struct Instruction {
    enum Kind { kArithmetic, kOfWarp, kLoad, kStore, kAtomic, kBranch, kCall, kReturn, kBarrier } kind = kArithmetic;
    Operation operation = nullptr;  // kOfWarp: executed once for all lanes, and passed the first one
    int predicate = -1;          // register, or -1: always
    bool negated = false;
    Operand to[4], from[10];     // several of one of them in vector instructions, of both in products of matrices
    int to_count = 0, from_count = 0;
    uint32_t bytes = 0;          // of each element of a load or store
    uint32_t target = 0;         // of a branch: instruction; of a call: function
    bool is_target = false;      // of a branch
    uint32_t weight = 1;         // approximate number of machine instructions
    uint32_t latency = 4;        // cycles until the result can be used, unless it comes from memory; likewise

    // Ends a basic block.
    bool changes_path() const { return kind >= kBranch; }
};

struct Function {
    std::string name;
    std::vector<Instruction> instructions;
    uint32_t register_count = 0;
    uint32_t local_bytes = 0;
};

// The contents of a module. Addresses of globals are host addresses.
struct Program {
    std::vector<Function> functions;
    std::map<std::string, uint32_t> function_index;
    std::map<std::string, std::vector<uint64_t>> globals;  // storage, 8-byte aligned

    // The kernel of this name; aborts without one.
    const Function& kernel(const std::string& name) const;
};

// Aborts with a message on unknown constructs.
Program read_program(const char* text);

// In operations.cpp: the implementation of an opcode; null if unknown.
Operation find_operation(const std::string& opcode);

}  // namespace ptx
