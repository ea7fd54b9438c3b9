// Implementations of the opcodes.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <unordered_map>

#include "machine.h"

namespace ptx {

uint64_t address_of(Thread& thread, const Operand& operand) {
    Frame& frame = thread.frames.back();
    switch (operand.kind) {
        case Operand::kShared: return reinterpret_cast<uint64_t>(thread.shared) + operand.value;
        case Operand::kLocal: return reinterpret_cast<uint64_t>(thread.local.data() + frame.local) + operand.value;
        case Operand::kParameter:
            return (frame.kernel_parameter ? reinterpret_cast<uint64_t>(frame.kernel_parameter)
                                           : reinterpret_cast<uint64_t>(&frame.parameters[operand.slot])) +
                   operand.value;
        case Operand::kArgument: return reinterpret_cast<uint64_t>(&thread.arguments[operand.slot]) + operand.value;
        case Operand::kReturned: return reinterpret_cast<uint64_t>(&thread.returned) + operand.value;
        case Operand::kRegister: return *thread.register_at(operand.slot) + operand.value;
        default: return operand.value;
    }
}

namespace {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using f32 = float;
using f64 = double;

template <class T>
T get(Thread& thread, const Operand& operand) {
    u64 bits = operand.value;
    switch (operand.kind) {
        case Operand::kRegister: bits = *thread.register_at(operand.slot); break;
        case Operand::kThreadIndex: bits = thread.index; break;
        case Operand::kBlockIndex: bits = thread.block; break;
        case Operand::kBlockCount: bits = thread.block_count; break;
        case Operand::kImmediate:
        case Operand::kGlobal: break;
        default: bits = address_of(thread, operand);
    }
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T>
void set(Thread& thread, const Operand& operand, T value) {
    u64 bits = 0;
    memcpy(&bits, &value, sizeof value);
    *thread.register_at(operand.slot) = bits;
}

// The result of arithmetic on floats: every NaN is this one, whatever the operands were. Copies and selections handle
// floats as bits, so they keep theirs.
void set(Thread& thread, const Operand& operand, f32 value) {
    constexpr u32 kCanonicalNan = 0x7FFFFFFF;
    if (isnan(value)) set(thread, operand, kCanonicalNan);
    else set<f32>(thread, operand, value);
}

// Towards zero; numbers out of range become the nearest integer, and NaN 0.
s32 truncated(f32 value) {
    if (isnan(value)) return 0;
    return value >= 2147483648.f ? INT32_MAX : value < -2147483648.f ? INT32_MIN : static_cast<s32>(value);
}

// ---- Memory

// Of one element, or of a vector of them, which is aligned as a whole.
uint64_t aligned_address(Thread& thread, const Operand& operand, const Instruction& i, int elements) {
    const u64 address = address_of(thread, operand), bytes = i.bytes * static_cast<u32>(elements);
    if (address % bytes != 0) {
        fprintf(stderr, "%s accesses %lu bytes at %#lx, which is not aligned\n",
                thread.frames.back().function->name.c_str(), bytes, address);
        abort();
    }
    return address;
}

// As many bits as a register may have; T says whether the sign fills those that memory lacks.
template <class T>
void load(Thread& thread, const Instruction& i) {
    const char* from = reinterpret_cast<const char*>(aligned_address(thread, i.from[0], i, i.to_count));
    for (int k = 0; k < i.to_count; ++k) {
        T value;
        memcpy(&value, from + static_cast<u32>(k) * sizeof value, sizeof value);
        set<s64>(thread, i.to[k], static_cast<s64>(value));
    }
}

void store(Thread& thread, const Instruction& i) {
    char* to = reinterpret_cast<char*>(aligned_address(thread, i.to[0], i, i.from_count));
    for (int k = 0; k < i.from_count; ++k) {
        const u64 bits = get<u64>(thread, i.from[k]);
        memcpy(to + static_cast<u32>(k) * i.bytes, &bits, i.bytes);
    }
}

// Threads run one after the other.
void add_atomically(Thread& thread, const Instruction& i) {
    u64* const sum = reinterpret_cast<u64*>(address_of(thread, i.from[0]));
    const u64 before = *sum;
    *sum += get<u64>(thread, i.from[1]);
    set(thread, i.to[0], before);
}

// ---- Control

void branch(Thread& thread, const Instruction& i) { thread.frames.back().next = i.target; }
void barrier(Thread& thread, const Instruction&) { thread.at_barrier = true; }
void leave(Thread& thread, const Instruction&) {
    thread.registers.resize(thread.frames.back().registers);
    thread.frames.pop_back();
}
void call(Thread& thread, const Instruction& i) {
    const Function& function = thread.program->functions[i.target];
    Frame frame{};
    frame.function = &function;
    frame.registers = thread.registers.size();
    const Frame& caller = thread.frames.back();
    frame.local = caller.local + (caller.function->local_bytes + 15) / 16 * 2;
    memcpy(frame.parameters, thread.arguments, sizeof frame.parameters);
    thread.registers.resize(frame.registers + function.register_count);
    thread.frames.push_back(frame);
}

void copy(Thread& thread, const Instruction& i) { set(thread, i.to[0], get<u64>(thread, i.from[0])); }
void select(Thread& thread, const Instruction& i) {
    set(thread, i.to[0], get<u64>(thread, i.from[get<u64>(thread, i.from[2]) & 1 ? 0 : 1]));
}

// ---- Arithmetic

#define DS_UNARY(opcode, T, expression) \
    {opcode, [](Thread& t, const Instruction& i) { const auto a = get<T>(t, i.from[0]); set(t, i.to[0], expression); }}
#define DS_BINARY(opcode, T, expression)                                      \
    {opcode, [](Thread& t, const Instruction& i) {                            \
         const auto a = get<T>(t, i.from[0]), b = get<T>(t, i.from[1]);       \
         set(t, i.to[0], expression);                                         \
     }}
#define DS_TERNARY(opcode, T, expression)                                                               \
    {opcode, [](Thread& t, const Instruction& i) {                                                      \
         const auto a = get<T>(t, i.from[0]), b = get<T>(t, i.from[1]), c = get<T>(t, i.from[2]);       \
         set(t, i.to[0], expression);                                                                   \
     }}
#define DS_COMPARE(opcode, T, expression) DS_BINARY(opcode, T, u64{expression})
#define DS_CONVERT(opcode, T, U) DS_UNARY(opcode, T, static_cast<U>(a))
#define DS_COMPARES(name, T)                                                                                  \
    DS_COMPARE("setp.lt." name, T, a < b), DS_COMPARE("setp.le." name, T, a <= b),                            \
        DS_COMPARE("setp.gt." name, T, a > b), DS_COMPARE("setp.ge." name, T, a >= b),                        \
        DS_COMPARE("setp.eq." name, T, a == b), DS_COMPARE("setp.ne." name, T, a != b)
// U: unsigned, because sums and products wrap around.
#define DS_INTEGERS(suffix, T, U)                                                                             \
    DS_BINARY("add." suffix, U, static_cast<U>(u64{a} + b)), DS_BINARY("sub." suffix, U, static_cast<U>(u64{a} - b)), \
        DS_BINARY("mul.lo." suffix, U, static_cast<U>(u64{a} * b)),                                           \
        DS_BINARY("min." suffix, T, b < a ? b : a), DS_BINARY("max." suffix, T, a < b ? b : a)
#define DS_BITS(name, T)                                                                                      \
    DS_BINARY("and." name, T, static_cast<T>(a & b)), DS_BINARY("or." name, T, static_cast<T>(a | b)),        \
        DS_BINARY("xor." name, T, static_cast<T>(a ^ b)), DS_UNARY("not." name, T, static_cast<T>(~a))
// Shifts beyond the width give the result of repeated shifts by one bit.
template <class T>
T shift_left(T a, u32 by) { return by < 8 * sizeof(T) ? static_cast<T>(a << by) : T{0}; }
template <class T>
T shift_right(T a, u32 by) {
    const u32 most = 8 * sizeof(T) - 1;
    return by <= most ? static_cast<T>(a >> by) : static_cast<T>(a < 0 ? -1 : 0);
}

// min and max of PTX: a number wins over NaN, and -0 is less than +0. Of two NaN, set() makes the canonical one.
f32 smaller(f32 a, f32 b) {
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    if (a == b) return signbit(a) ? a : b;
    return a < b ? a : b;
}
f32 larger(f32 a, f32 b) { return -smaller(-a, -b); }

template <class T>
void insert_bits(Thread& thread, const Instruction& i) {
    constexpr u32 kBits = 8 * sizeof(T);
    const u32 at = get<u32>(thread, i.from[2]) & 255, width = get<u32>(thread, i.from[3]) & 255;
    const T lowest = width < kBits ? static_cast<T>((T{1} << width) - 1) : static_cast<T>(~T{0});
    const T mask = shift_left(lowest, at), inserted = shift_left(get<T>(thread, i.from[0]), at);
    set(thread, i.to[0], static_cast<T>((get<T>(thread, i.from[1]) & ~mask) | (inserted & mask)));
}

u32 reversed(u32 a) {
    u32 result = 0;
    for (int bit = 0; bit < 32; ++bit) result |= (a >> bit & 1) << (31 - bit);
    return result;
}

// Four of the eight bytes in b and a, each chosen by four bits, the highest of which requests the byte's sign instead.
u32 permuted(u32 a, u32 b, u32 choices) {
    const u64 bytes = static_cast<u64>(b) << 32 | a;
    u32 result = 0;
    for (int i = 0; i < 4; ++i) {
        const u32 choice = choices >> 4 * i;
        const u32 byte = static_cast<u32>(bytes >> 8 * (choice & 7)) & 255;
        result |= (choice & 8 ? (byte >> 7) * 255 : byte) << 8 * i;
    }
    return result;
}

// The nearest number of bfloat16, the even one of two that are as near: the upper half of a float.
u32 bfloat16_of(f32 value) {
    u32 bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return 0x7FFF;
    const u32 kept = bits >> 16, rest = bits & 0xFFFF;
    return rest > 0x8000 || (rest == 0x8000 && kept % 2 == 1) ? kept + 1 : kept;  // after the largest comes infinity
}

f32 of_bfloat16(u32 bits) {
    const u32 widened = bits << 16;
    f32 value;
    memcpy(&value, &widened, sizeof value);
    return value;
}

// mma.m16n8k16, d = a * b + c: element i of a lane's fragment is the lower or upper half of register i / 2, and is at
// the place that the PTX ISA says. This sum is rounded once; the ISA leaves the order and the roundings open.
void multiply_matrices(Thread& first, const Instruction& i) {
    f64 a[16][16], b[16][8];
    Thread* const lanes = &first;
    const auto half = [](Thread& lane, const Operand& pair, u32 index) {
        return of_bfloat16(get<u32>(lane, pair) >> 16 * index & 0xFFFF);
    };
    for (u32 lane = 0; lane < kWarp; ++lane) {
        const u32 group = lane >> 2, in_group = lane % 4;
        for (u32 k = 0; k < 8; ++k) {
            const u32 row = k < 2 || (k >= 4 && k < 6) ? group : group + 8;
            const u32 column = in_group * 2 + (k & 1) + (k >= 4 ? 8 : 0);
            a[row][column] = half(lanes[lane], i.from[k / 2], k & 1);
        }
        for (u32 k = 0; k < 4; ++k)
            b[in_group * 2 + (k & 1) + (k >= 2 ? 8 : 0)][group] = half(lanes[lane], i.from[4 + k / 2], k & 1);
    }
    for (u32 lane = 0; lane < kWarp; ++lane)
        for (u32 k = 0; k < 4; ++k) {
            const u32 row = k < 2 ? lane >> 2 : (lane >> 2) + 8, column = lane % 4 * 2 + (k & 1);
            f64 sum = get<f32>(lanes[lane], i.from[6 + k]);
            for (u32 inner = 0; inner < 16; ++inner) sum += a[row][inner] * b[inner][column];
            set(lanes[lane], i.to[k], static_cast<f32>(sum));
        }
}

template <class T, T (*shift)(T, u32)>
void shift_by(Thread& t, const Instruction& i) {
    set(t, i.to[0], shift(get<T>(t, i.from[0]), get<u32>(t, i.from[1])));
}
#define DS_SHIFTS(name, unsigned_name, signed_name, U, S)                                                     \
    {"shl." name, shift_by<U, shift_left<U>>}, {"shr." unsigned_name, shift_by<U, shift_right<U>>},           \
        {"shr." signed_name, shift_by<S, shift_right<S>>}

const std::unordered_map<std::string, Operation>& operations() {
    static const std::unordered_map<std::string, Operation> table = {
        {"bra", branch}, {"bra.uni", branch}, {"bar.sync", barrier}, {"ret", leave}, {"call.uni", call}, {"call", call},

        {"atom.global.add.u64", add_atomically},
        {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", multiply_matrices},

        DS_INTEGERS("s16", s16, u16), DS_INTEGERS("u16", u16, u16), DS_INTEGERS("s32", s32, u32),
        DS_INTEGERS("u32", u32, u32), DS_INTEGERS("s64", s64, u64), DS_INTEGERS("u64", u64, u64),
        DS_BINARY("div.s32", s32, a / b), DS_BINARY("div.u32", u32, a / b), DS_BINARY("rem.s32", s32, a % b),
        DS_BINARY("mul.hi.s32", s32, static_cast<s32>(static_cast<s64>(a) * b >> 32)),
        DS_BINARY("mul.wide.s32", s32, static_cast<s64>(a) * b),
        DS_BINARY("mul.wide.u32", u32, static_cast<u64>(a) * b),
        DS_BINARY("mul.wide.u16", u16, static_cast<u32>(a) * b),
        DS_TERNARY("mad.lo.s32", u32, a * b + c),
        DS_UNARY("neg.s32", u32, 0u - a), DS_UNARY("neg.s64", u64, u64{0} - a),

        DS_BITS("b16", u16), DS_BITS("b32", u32), DS_BITS("b64", u64),
        DS_BINARY("and.pred", u64, a & b & 1), DS_BINARY("or.pred", u64, (a | b) & 1),
        DS_BINARY("xor.pred", u64, (a ^ b) & 1), DS_UNARY("not.pred", u64, ~a & 1),
        DS_SHIFTS("b16", "u16", "s16", u16, s16), DS_SHIFTS("b32", "u32", "s32", u32, s32),
        DS_SHIFTS("b64", "u64", "s64", u64, s64),
        DS_TERNARY("shf.l.wrap.b32", u32, static_cast<u32>((static_cast<u64>(b) << 32 | a) << (c & 31) >> 32)),
        {"bfi.b32", insert_bits<u32>}, {"bfi.b64", insert_bits<u64>},
        DS_TERNARY("prmt.b32", u32, permuted(a, b, c)),
        DS_UNARY("brev.b32", u32, reversed(a)), DS_UNARY("popc.b32", u32, static_cast<u32>(__builtin_popcount(a))),
        DS_UNARY("bfind.shiftamt.u32", u32, a ? static_cast<u32>(__builtin_clz(a)) : 0xFFFFFFFFu),

        DS_COMPARES("s16", s16), DS_COMPARES("u16", u16), DS_COMPARES("s32", s32), DS_COMPARES("u32", u32),
        DS_COMPARES("s64", s64), DS_COMPARES("u64", u64), DS_COMPARES("b32", u32), DS_COMPARES("b16", u16),
        DS_COMPARE("setp.lt.f32", f32, a < b), DS_COMPARE("setp.le.f32", f32, a <= b),
        DS_COMPARE("setp.gt.f32", f32, a > b), DS_COMPARE("setp.ge.f32", f32, a >= b),
        DS_COMPARE("setp.eq.f32", f32, a == b),
        DS_COMPARE("setp.ltu.f32", f32, !(a >= b)), DS_COMPARE("setp.leu.f32", f32, !(a > b)),
        DS_COMPARE("setp.gtu.f32", f32, !(a <= b)), DS_COMPARE("setp.geu.f32", f32, !(a < b)),
        DS_COMPARE("setp.neu.f32", f32, a != b), DS_COMPARE("setp.nan.f32", f32, a != a || b != b),
        DS_COMPARE("setp.num.f32", f32, a == a && b == b), DS_COMPARE("setp.num.f64", f64, a == a && b == b),
        DS_COMPARE("setp.eq.b64", u64, a == b), DS_COMPARE("setp.lt.f64", f64, a < b),
        DS_COMPARE("setp.le.f64", f64, a <= b), DS_COMPARE("setp.gt.f64", f64, a > b),

        DS_BINARY("add.rn.f32", f32, a + b), DS_BINARY("sub.rn.f32", f32, a - b), DS_BINARY("mul.rn.f32", f32, a * b),
        DS_TERNARY("fma.rn.f32", f32, __builtin_fmaf(a, b, c)),
        DS_BINARY("div.rn.f32", f32, a / b), DS_UNARY("rcp.rn.f32", f32, 1.f / a),
        DS_UNARY("sqrt.rn.f32", f32, __builtin_sqrtf(a)), DS_UNARY("abs.f32", u32, a & 0x7FFFFFFFu),
        DS_UNARY("neg.f32", u32, a ^ 0x80000000u), DS_BINARY("min.f32", f32, smaller(a, b)),
        DS_BINARY("max.f32", f32, larger(a, b)),
        DS_BINARY("add.rn.f64", f64, a + b), DS_BINARY("sub.rn.f64", f64, a - b), DS_BINARY("mul.rn.f64", f64, a * b),
        DS_BINARY("div.rn.f64", f64, a / b), DS_UNARY("cvt.rzi.s32.f32", f32, truncated(a)),
        DS_CONVERT("cvt.rn.f32.f64", f64, f32), DS_CONVERT("cvt.s64.s32", s32, s64),
        DS_CONVERT("cvt.u64.u32", u32, u64), DS_CONVERT("cvt.u64.u16", u16, u64), DS_CONVERT("cvt.u32.u64", u64, u32),
        DS_CONVERT("cvt.u32.u16", u16, u32), DS_CONVERT("cvt.u16.u64", u64, u16), DS_CONVERT("cvt.u16.u32", u32, u16),
        DS_CONVERT("cvt.s32.s8", int8_t, s32), DS_CONVERT("cvt.s64.s8", int8_t, s64),
        DS_CONVERT("cvt.s32.s16", s16, s32), DS_CONVERT("cvt.rn.f32.s32", s32, f32),
        DS_CONVERT("cvt.rn.f32.u32", u32, f32),
        DS_BINARY("cvt.rn.bf16x2.f32", f32, bfloat16_of(a) << 16 | bfloat16_of(b)),
    };
    return table;
}

Operation find_load(const std::string& type) {
    const std::pair<const char*, Operation> known[] = {
        {"s8", load<int8_t>}, {"s16", load<s16>}, {"s32", load<s32>}, {"u8", load<u8>},   {"b8", load<u8>},
        {"u16", load<u16>},   {"b16", load<u16>}, {"u32", load<u32>}, {"b32", load<u32>}, {"f32", load<u32>}};
    for (const auto& [name, operation] : known)
        if (type == name) return operation;
    return load<u64>;
}

}  // namespace

Operation find_operation(const std::string& opcode) {
    if (opcode.starts_with("ld.")) return find_load(opcode.substr(opcode.rfind('.') + 1));
    if (opcode.starts_with("st.")) return store;
    // All bits of a register: of narrower types those that they lack are zero.
    if (opcode.starts_with("mov.") || opcode.starts_with("cvta.")) return copy;
    if (opcode.starts_with("selp.")) return select;
    const auto found = operations().find(opcode);
    return found == operations().end() ? nullptr : found->second;
}

}  // namespace ptx
