#include "program.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <regex>
#include <sstream>

namespace ptx {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& line) {
    fprintf(stderr, "the PTX reader does not know %s: %s\n", what.c_str(), line.c_str());
    abort();
}

std::string trimmed(std::string text) {
    const size_t comment = text.find("//");
    if (comment != std::string::npos) text.erase(comment);
    const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t\r");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

// Without braces and commas.
std::string words_of(std::string text) {
    for (char& c : text)
        if (c == '{' || c == '}' || c == ',') c = ' ';
    return text;
}

// Names that are local to a function.
struct Scope {
    std::map<std::string, uint32_t> registers;
    std::map<std::string, uint32_t> labels;
    std::vector<std::pair<size_t, std::string>> branches;  // instruction, label
    std::string local_name;
};

uint32_t element_bytes(const std::string& opcode) {
    const char kind = opcode[opcode.find_last_of('.') + 1];
    if (kind == 'p') return 1;
    return static_cast<uint32_t>(atoi(opcode.c_str() + opcode.find_last_of('.') + 2)) / 8;
}

class Reader {
public:
    Reader(const char* text, Program& program) : text_(text), program_(program) {}

    void read() {
        std::string line;
        while (next(line)) {
            if (line.rfind(".func", 0) == 0 || line.rfind(".visible .entry", 0) == 0) read_function(line);
            else if (line.rfind(".global", 0) == 0 || line.rfind(".const", 0) == 0) read_global(line);
            else if (line.rfind(".extern .shared", 0) == 0) read_shared_name(line);
        }
        for (auto& [function, instruction, name] : calls_) {
            const auto found = program_.function_index.find(name);
            if (found == program_.function_index.end()) refuse("the function", name);
            program_.functions[function].instructions[instruction].target = found->second;
        }
    }

private:
    bool next(std::string& line) {
        while (std::getline(text_, line)) {
            line = trimmed(line);
            if (!line.empty()) return true;
        }
        return false;
    }

    // .global .align 4 .f32 name = 0f40280000;   .global .align 4 .b8 name[12] = {0, 0, ...};
    void read_global(const std::string& line) {
        static const std::regex form(
            R"(\.(?:global|const) \.align \d+ \.([a-z]+)(\d+) ([\w$]+)(?:\[(\d+)\])?(?: = (.*))?;)");
        std::smatch match;
        if (!std::regex_match(line, match, form)) refuse("the variable", line);
        const size_t element = std::stoul(match[2]) / 8, count = match[4].matched ? std::stoul(match[4]) : 1;
        std::vector<uint64_t> storage(element * count / 8 + 1);
        std::string values = match[5];
        if (values.find("generic") != std::string::npos) values.clear();  // tables of names, which no kernel reads
        std::istringstream in(words_of(values));
        std::string value;
        for (size_t k = 0; in >> value; ++k) {
            const uint64_t bits = number(value);
            memcpy(reinterpret_cast<char*>(storage.data()) + k * element, &bits, element);
        }
        program_.globals.emplace(match[3], std::move(storage));
    }

    void read_shared_name(const std::string& line) {
        const size_t end = line.find('['), start = line.find_last_of(' ', end) + 1;
        shared_name_ = line.substr(start, end - start);
    }

    void read_function(const std::string& first) {
        std::string head = first, line;
        while (head.find('(') == std::string::npos || line != ")") {  // the list of parameters ends on its own line
            if (!next(line)) return;
            head += " " + line;
        }
        std::streampos before = text_.tellg();
        while (next(line) && line[0] == '.' ) before = text_.tellg();
        if (line != "{") {  // a declaration
            if (line != ";") text_.seekg(before);
            return;
        }
        static const std::regex named(R"((?:\.func\s+(?:\([^)]*\)\s*)?|\.visible \.entry )([\w$]+)\s*\()");
        std::smatch match;
        if (!std::regex_search(head, match, named)) refuse("the function", head);
        program_.function_index[match[1]] = static_cast<uint32_t>(program_.functions.size());
        program_.functions.emplace_back();
        program_.functions.back().name = match[1];
        read_body();
    }

    void read_body() {
        Function& function = program_.functions.back();
        Scope scope;
        int depth = 1;
        std::string line;
        while (depth > 0 && next(line)) {
            if (line == "{") ++depth;
            else if (line == "}") --depth;
            else if (line.rfind(".reg", 0) == 0) read_registers(line, function, scope);
            else if (line.rfind(".local", 0) == 0) read_local(line, function, scope);
            else if (line[0] == '.') continue;
            else if (line.back() == ':') scope.labels[line.substr(0, line.size() - 1)] = size_of(function);
            else {
                while (line.back() != ';') {
                    std::string more;
                    if (!next(more)) refuse("the end of", line);
                    line += " " + more;
                }
                read_instruction(line.substr(0, line.size() - 1), function, scope);
            }
        }
        for (auto& [instruction, label] : scope.branches) {
            const uint32_t target = scope.labels.at(label);
            function.instructions[instruction].target = target;
            function.instructions[target].is_target = true;
        }
    }

    static uint32_t size_of(const Function& function) { return static_cast<uint32_t>(function.instructions.size()); }

    static void read_registers(const std::string& line, Function& function, Scope& scope) {
        const size_t open = line.find('<');
        const size_t start = line.find_last_of(" \t", open == std::string::npos ? line.size() : open) + 1;
        if (open == std::string::npos) {
            scope.registers[line.substr(start, line.size() - start - 1)] = function.register_count++;
            return;
        }
        const std::string prefix = line.substr(start, open - start);
        const uint32_t count = static_cast<uint32_t>(atoi(line.c_str() + open + 1));
        for (uint32_t i = 0; i < count; ++i) scope.registers[prefix + std::to_string(i)] = function.register_count++;
    }

    static void read_local(const std::string& line, Function& function, Scope& scope) {
        const size_t open = line.find('['), start = line.find_last_of(" \t", open) + 1;
        scope.local_name = line.substr(start, open - start);
        function.local_bytes = static_cast<uint32_t>(atoi(line.c_str() + open + 1));
    }

    static uint64_t number(const std::string& text) {
        if (text.rfind("0f", 0) == 0 || text.rfind("0d", 0) == 0) return strtoull(text.c_str() + 2, nullptr, 16);
        return text[0] == '-' ? static_cast<uint64_t>(strtoll(text.c_str(), nullptr, 0))
                              : strtoull(text.c_str(), nullptr, 0);
    }

    Operand operand(const std::string& text, const Scope& scope, const std::string& line) {
        Operand result;
        if (const auto found = scope.registers.find(text); found != scope.registers.end()) {
            result.kind = Operand::kRegister;
            result.slot = found->second;
        } else if (text == "%tid.x") result.kind = Operand::kThreadIndex;
        else if (text == "%ctaid.x") result.kind = Operand::kBlockIndex;
        else if (text == "%nctaid.x") result.kind = Operand::kBlockCount;
        else if (isdigit(text[0]) || text[0] == '-') {
            result.kind = Operand::kImmediate;
            result.value = number(text);
        } else if (text == shared_name_) result.kind = Operand::kShared;
        else if (text == scope.local_name) result.kind = Operand::kLocal;
        else if (text.rfind("param", 0) == 0 && text.size() <= 6) {
            result.kind = Operand::kArgument;
            result.slot = static_cast<uint32_t>(atoi(text.c_str() + 5));
        } else if (text == "retval0" || text == "func_retval0") result.kind = Operand::kReturned;
        else if (const size_t at = text.rfind("_param_"); at != std::string::npos) {
            result.kind = Operand::kParameter;
            result.slot = static_cast<uint32_t>(atoi(text.c_str() + at + 7));
        } else if (const auto global = program_.globals.find(text); global != program_.globals.end()) {
            result.kind = Operand::kGlobal;
            result.value = reinterpret_cast<uint64_t>(global->second.data());
        } else refuse("the operand " + text, line);
        return result;
    }

    // [%rd1+16], [%rd1], [name+4]
    Operand address(const std::string& text, const Scope& scope, const std::string& line) {
        const std::string inside = text.substr(1, text.size() - 2);
        const size_t plus = inside.find('+');
        Operand result = operand(inside.substr(0, plus), scope, line);
        if (plus != std::string::npos) result.value += number(inside.substr(plus + 1));
        return result;
    }

    void read_instruction(const std::string& line, Function& function, Scope& scope) {
        Instruction instruction;
        std::istringstream in(line);
        std::string word;
        in >> word;
        if (word[0] == '@') {
            instruction.negated = word[1] == '!';
            instruction.predicate = static_cast<int>(scope.registers.at(word.substr(instruction.negated ? 2 : 1)));
            in >> word;
        }
        const std::string opcode = word;
        if (opcode == ".pragma") return;
        instruction.operation = find_operation(opcode);
        if (!instruction.operation) refuse("the opcode " + opcode, line);
        instruction.kind = kind_of(opcode);
        set_cost(opcode, instruction);
        std::string rest;
        std::getline(in, rest, '\0');
        if (opcode.rfind("bra", 0) == 0) scope.branches.emplace_back(function.instructions.size(), trimmed(rest));
        else if (opcode.rfind("call", 0) == 0) read_call(rest, function);
        else if (opcode != "bar.sync" && opcode != "ret") read_operands(opcode, rest, instruction, scope, line);
        function.instructions.push_back(instruction);
    }

    // (retval0), name, (param0, param1)
    void read_call(const std::string& rest, const Function& function) {
        std::istringstream in(rest);
        std::string word;
        while (in >> word)
            if (word[0] != '(' && word.rfind("param", 0) != 0 && word[0] != ')') break;
        if (word.back() == ',') word.pop_back();
        calls_.emplace_back(program_.functions.size() - 1, function.instructions.size(), word);
    }

    void read_operands(const std::string& opcode, const std::string& rest, Instruction& instruction, const Scope& scope,
                       const std::string& line) {
        const auto parse = [&](const std::string& text) {
            return text[0] == '[' ? address(text, scope, line) : operand(text, scope, line);
        };
        const std::string all = trimmed(rest);
        const size_t end = std::min(all.size(), all.find(all[0] == '{' ? '}' : ','));  // of the destinations
        std::istringstream to(words_of(all.substr(0, end))), from(words_of(all.substr(end)));
        std::string word;
        while (to >> word) instruction.to[instruction.to_count++] = parse(word);
        while (from >> word) instruction.from[instruction.from_count++] = parse(word);
        if (instruction.kind >= Instruction::kLoad) instruction.bytes = element_bytes(opcode);
    }

    static Instruction::Kind kind_of(const std::string& opcode) {
        static const std::pair<const char*, Instruction::Kind> beginnings[] = {
            {"mma.", Instruction::kOfWarp}, {"ld.", Instruction::kLoad},   {"st.", Instruction::kStore},
            {"atom.", Instruction::kAtomic}, {"bra", Instruction::kBranch}, {"call", Instruction::kCall},
            {"ret", Instruction::kReturn},   {"bar.", Instruction::kBarrier}};
        for (const auto& [beginning, kind] : beginnings)
            if (opcode.rfind(beginning, 0) == 0) return kind;
        return Instruction::kArithmetic;
    }

    // Most become one machine instruction of sm_90.
    static void set_cost(const std::string& opcode, Instruction& instruction) {
        const auto set = [&](uint32_t weight, uint32_t latency) {
            instruction.weight = weight;
            instruction.latency = latency;
        };
        if (opcode == "div.rn.f32") set(10, 70);
        if (opcode == "rcp.rn.f32" || opcode == "sqrt.rn.f32") set(8, 70);
        if (opcode.rfind("mma.", 0) == 0) set(4, 33);  // the cycles for which it occupies a tensor core of an H100
        if (opcode.rfind("cvta", 0) == 0 || opcode.rfind("mov", 0) == 0) set(0, 0);
    }

    std::istringstream text_;
    Program& program_;
    std::string shared_name_;
    std::vector<std::tuple<size_t, size_t, std::string>> calls_;
};

}  // namespace

const Function& Program::kernel(const std::string& name) const {
    const auto found = function_index.find(name);
    if (found == function_index.end()) refuse("the kernel", name);
    return functions[found->second];
}

Program read_program(const char* text) {
    Program program;
    Reader(text, program).read();
    return program;
}

}  // namespace ptx
