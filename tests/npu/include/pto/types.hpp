// Element types and the words that instructions take. The conversions round to nearest, ties to even.
#pragma once

#include <cstdint>
#include <cstring>

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__
#endif

#ifndef PTO_HOST_FAMILY_A5
#error "-DPTO_HOST_FAMILY_A5=0 stands for a2a3, =1 for a5"
#elif PTO_HOST_FAMILY_A5
#define PTO_EMU_FAMILY a5
#else
#define PTO_EMU_FAMILY a2a3
#endif

namespace pto::emu {

inline uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float float_of(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint16_t half_bits(float value) {
    const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (size >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (size < 0x33000000u) return static_cast<uint16_t>(sign);
    uint32_t whole, rest, unit;  // the mantissa of the result, what is cut off, and half of its last place
    if (size < 0x38800000u) {
        const uint32_t shift = 126u - (size >> 23), mantissa = (size & 0x7fffffu) | 0x800000u;
        whole = mantissa >> shift;
        rest = mantissa & ((1u << shift) - 1u);
        unit = 1u << (shift - 1u);
    } else {
        whole = (size - 0x38000000u) >> 13;
        rest = size & 0x1fffu;
        unit = 0x1000u;
    }
    if (rest > unit || (rest == unit && (whole & 1u))) ++whole;
    return static_cast<uint16_t>(sign | whole);
}

inline float half_value(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, size = bits & 0x7fffu;
    if (size >= 0x7c00u) return float_of(sign | 0x7f800000u | (size & 0x3ffu) << 13);
    if (size >= 0x400u) return float_of(sign | ((size << 13) + 0x38000000u));
    const float small = static_cast<float>(size) * float_of(0x33800000u);  // 2^-24
    return float_of(sign | bits_of(small));
}

inline uint16_t bfloat_bits(float value) {
    const uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float bfloat_value(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

}  // namespace pto::emu

struct half {
    uint16_t bits;
    half() = default;
    half(float value) : bits(pto::emu::half_bits(value)) {}
    operator float() const { return pto::emu::half_value(bits); }
};

// A type of its own where the compiler says that it has one.
#ifdef __STDCPP_BFLOAT16_T__
struct bfloat16_t {
    uint16_t bits;
    bfloat16_t() = default;
    bfloat16_t(float value) : bits(pto::emu::bfloat_bits(value)) {}
    operator float() const { return pto::emu::bfloat_value(bits); }
};
#else
using bfloat16_t = half;
#endif

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

namespace pto {

enum class TileType { Vec, Mat, Left, Right, Acc, Bias };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class Layout { ND, DN };
enum class PadValue { Null, Zero, Max, Min };
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD };
enum class SaturationMode { OFF, ON };
enum class CmpMode { EQ, NE, LT, LE, GT, GE };
enum class MaskPattern { P0101, P1010, P0001, P0010, P0100, P1000, P1111 };
enum class AtomicType { AtomicNone, AtomicAdd };

namespace emu {

enum class Family : uint8_t { a2a3, a5 };
enum class Dtype : uint8_t { f32, f16, bf16, i32, u32, i16, u16, i8, u8, i64, u64 };

template <typename T>
struct DtypeOf;
template <> struct DtypeOf<float> { static constexpr Dtype value = Dtype::f32; };
template <> struct DtypeOf<half> { static constexpr Dtype value = Dtype::f16; };
#ifdef __STDCPP_BFLOAT16_T__
template <> struct DtypeOf<bfloat16_t> { static constexpr Dtype value = Dtype::bf16; };
#endif
template <> struct DtypeOf<int32_t> { static constexpr Dtype value = Dtype::i32; };
template <> struct DtypeOf<uint32_t> { static constexpr Dtype value = Dtype::u32; };
template <> struct DtypeOf<int16_t> { static constexpr Dtype value = Dtype::i16; };
template <> struct DtypeOf<uint16_t> { static constexpr Dtype value = Dtype::u16; };
template <> struct DtypeOf<int8_t> { static constexpr Dtype value = Dtype::i8; };
template <> struct DtypeOf<uint8_t> { static constexpr Dtype value = Dtype::u8; };
template <> struct DtypeOf<int64_t> { static constexpr Dtype value = Dtype::i64; };
template <> struct DtypeOf<uint64_t> { static constexpr Dtype value = Dtype::u64; };

// Which instruction runs, and where it stands in the kernel's source.
struct Site {
    const char *op;
    const char *file;
    int line;
    Family family;
};

// A number operand, before it takes the dtype of the tiles.
struct Number {
    double real;
    int64_t whole;
    bool is_real;
    Number() : real(0), whole(0), is_real(false) {}
    Number(float value) : real(value), whole(0), is_real(true) {}
    Number(double value) : real(value), whole(0), is_real(true) {}
    Number(half value) : Number(static_cast<float>(value)) {}
#ifdef __STDCPP_BFLOAT16_T__
    Number(bfloat16_t value) : Number(static_cast<float>(value)) {}
#endif
    Number(int value) : Number(static_cast<long long>(value)) {}
    Number(unsigned value) : Number(static_cast<long long>(value)) {}
    Number(long value) : Number(static_cast<long long>(value)) {}
    Number(unsigned long value) : Number(static_cast<long long>(value)) {}
    Number(unsigned long long value) : Number(static_cast<long long>(value)) {}
    Number(long long value) : real(static_cast<double>(value)), whole(value), is_real(false) {}
};

struct TileState {
    TileType type;
    Dtype dtype;
    BLayout blocks;
    SLayout inner;
    PadValue pad;
    int fractal;
    int rows, cols;          // of the storage
    int valid_rows, valid_cols;
    int type_rows, type_cols;    // the valid part as the tile's type has it: -1 where it is dynamic
    uint64_t address;        // in its memory
    bool assigned;
};

struct GlobalState {
    uint64_t address;        // of the first byte, on the host
    Dtype dtype;
    Layout layout;
    int64_t shape[5];
    int64_t stride[5];       // in elements
};

constexpr int kMaxTiles = 8;

// What an instruction is given.
struct Operands {
    TileState *tile[kMaxTiles] = {};
    int n_tiles = 0;
    GlobalState *global = nullptr;
    Number number;
    int64_t word = 0, word2 = 0;
    Operands() = default;
    template <typename... Tiles>
    explicit Operands(TileState &first, Tiles &...rest) : tile{&first, &rest...}, n_tiles(1 + static_cast<int>(sizeof...(rest))) {}
};

// The emulated core: a library of its own, so that kernels compile fast.
void run(const Site &site, const Operands &operands);
void set_flag(const Site &site, pipe_t after, pipe_t before, int event);
void wait_flag(const Site &site, pipe_t after, pipe_t before, int event);
void barrier(const Site &site, pipe_t pipe);
uint64_t peek(const Site &site, const TileState &tile, int64_t index);
void poke(const Site &site, const TileState &tile, int64_t index, uint64_t bits);

}  // namespace emu
}  // namespace pto

// The last two parameters of every instruction: where it is called.
#define PTO_EMU_AT const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define PTO_EMU_SITE(NAME) \
    ::pto::emu::Site { NAME, file, line, ::pto::emu::Family::PTO_EMU_FAMILY }
