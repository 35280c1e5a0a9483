// Comparisons, what chooses by their masks, and conversions.

#include <cmath>
#include <limits>
#include <string>

#include "step.h"

namespace pto::emu {

namespace {

constexpr int kBits = 8;

template <typename T>
bool holds(int64_t mode, T a, T b) {
    switch (static_cast<CmpMode>(mode)) {
        case CmpMode::EQ: return a == b;
        case CmpMode::NE: return a != b;
        case CmpMode::LT: return a < b;
        case CmpMode::LE: return a <= b;
        case CmpMode::GT: return a > b;
        case CmpMode::GE: return a >= b;
    }
    return false;
}

void check_mask(const Step &step, int mask) {
    step.check_vector(mask);
    step.require(bytes_of(step.tile(mask).dtype) == 1, "the mask is " + std::string(name_of(step.tile(mask).dtype)) + ", not u8");
}

void compare(const Step &step) {
    const bool with_tile = step.n_tiles() == 3;
    for (int i = 1; i < step.n_tiles(); ++i) {
        step.check_vector(i);
        step.check_same_valid(1, i);
        step.check_same_dtype(1, i);
    }
    check_mask(step, 0);
    const Dtype dtype = step.tile(1).dtype;
    step.check_dtype(dtype);
    step.start(PIPE_V);
    const Grid a = step.read(1);
    Grid b = a;
    if (with_tile) b = step.read(2);
    else b.bits.assign(a.size(), number_bits(dtype, step.operands.number)), b.doubts.assign(a.size(), 0);
    Grid mask(step.tile(0).dtype, step.tile(0).valid_rows, step.tile(0).valid_cols);
    for (int row = 0; row < a.rows; ++row) {
        for (int col = 0; col < a.cols; ++col) {
            const size_t at = a.at(row, col), to = mask.at(row, col / kBits);
            const bool bit = is_float(dtype) ? holds(step.operands.word, real_of(dtype, a.bits[at]), real_of(dtype, b.bits[at]))
                                             : holds(step.operands.word, whole_of(dtype, a.bits[at]), whole_of(dtype, b.bits[at]));
            mask.bits[to] |= static_cast<uint64_t>(bit) << col % kBits;
            if (a.doubts[at] || b.doubts[at]) {
                mask.doubts[to] = static_cast<uint8_t>(Doubt::some_bits);
                mask.unknown[to] |= static_cast<uint8_t>(1 << col % kBits);
            }
        }
    }
    step.write(0, mask);
}

void select(const Step &step) {
    const bool with_tile = std::string(step.site.op) == "TSEL";
    const int scratch = step.n_tiles() - 1;
    for (int i = 2; i < scratch; ++i) {
        step.check_vector(i);
        step.check_same_valid(0, i);
        step.check_same_dtype(0, i);
    }
    step.check_vector(0);
    check_mask(step, 1);
    const Dtype dtype = step.tile(0).dtype;
    step.check_dtype(dtype);
    step.start(PIPE_V);
    const Grid mask = step.read(1), a = step.read(2);
    Grid b = a;
    if (with_tile) b = step.read(3);
    else b.bits.assign(a.size(), number_bits(dtype, step.operands.number)), b.doubts.assign(a.size(), 0);
    Grid result(dtype, a.rows, a.cols);
    for (int row = 0; row < a.rows; ++row) {
        for (int col = 0; col < a.cols; ++col) {
            const size_t at = a.at(row, col), from = mask.at(row, col / kBits);
            const Grid &chosen = mask.bits[from] >> col % kBits & 1 ? a : b;
            result.bits[at] = chosen.bits[at];
            const bool some = mask.doubts[from] == static_cast<uint8_t>(Doubt::some_bits);
            const bool known = some ? !(mask.unknown[from] >> col % kBits & 1) : !mask.doubts[from];
            result.doubts[at] = known ? chosen.doubts[at] : mask.doubts[from];
        }
    }
    step.scratch(scratch);
    step.write(0, result);
}

double rounded(double value, RoundMode mode) {
    switch (mode) {
        case RoundMode::CAST_FLOOR: return std::floor(value);
        case RoundMode::CAST_CEIL: return std::ceil(value);
        case RoundMode::CAST_TRUNC: return std::trunc(value);
        case RoundMode::CAST_ROUND: return std::round(value);
        default: return std::nearbyint(value);
    }
}

struct Converted {
    uint64_t bits;
    bool fits;
};

double lowest(Dtype dtype) {
    const int places = 8 * bytes_of(dtype);
    const bool is_signed = dtype == Dtype::i8 || dtype == Dtype::i16 || dtype == Dtype::i32 || dtype == Dtype::i64;
    return is_signed ? -std::ldexp(1.0, places - 1) : 0.0;
}

double highest(Dtype dtype) { return lowest(dtype) == 0.0 ? std::ldexp(1.0, 8 * bytes_of(dtype)) - 1 : -lowest(dtype) - 1; }

// To a float: rounded to nearest, or as the mode says where that differs. To an integer: rounded, then held in its range.
Converted convert(Dtype from, uint64_t bits, Dtype to, RoundMode mode) {
    if (is_float(from) && is_float(to)) {
        const float value = real_of(from, bits);
        uint64_t result = real_bits(to, value);
        const float back = real_of(to, result);
        const bool down = mode == RoundMode::CAST_FLOOR || (mode == RoundMode::CAST_TRUNC && value > 0);
        const bool up = mode == RoundMode::CAST_CEIL || (mode == RoundMode::CAST_TRUNC && value < 0);
        if ((down && back > value) || (up && back < value)) result += (back > 0) == down ? -1 : 1;
        return {result, true};
    }
    if (is_float(to)) return {real_bits(to, static_cast<float>(whole_of(from, bits))), true};
    if (!is_float(from)) {
        const int64_t value = whole_of(from, bits);
        const bool fits = whole_of(to, whole_bits(to, value)) == value;
        if (fits) return {whole_bits(to, value), true};
        return {whole_bits(to, static_cast<int64_t>(value < 0 ? lowest(to) : highest(to))), false};
    }
    const double value = rounded(real_of(from, bits), mode);
    if (std::isnan(value)) return {0, false};
    if (value < lowest(to)) return {whole_bits(to, static_cast<int64_t>(lowest(to))), false};
    if (value > highest(to)) {
        return {to == Dtype::i64 ? uint64_t{0x7fffffffffffffff} : whole_bits(to, static_cast<int64_t>(highest(to))), false};
    }
    return {whole_bits(to, static_cast<int64_t>(value)), true};
}

// What does not fit means nothing unless saturation is asked for.
void cast(const Step &step) {
    for (int i = 0; i < 2; ++i) {
        step.check_vector(i);
        step.check_dtype(step.tile(i).dtype);
    }
    step.check_same_valid(0, 1);
    step.require(step.tile(0).dtype != step.tile(1).dtype || is_float(step.tile(0).dtype), "both tiles are integers of one dtype");
    step.start(PIPE_V);
    const Grid from = step.read(1);
    Grid to(step.tile(0).dtype, from.rows, from.cols);
    const bool saturates = step.operands.word2 == 1 + static_cast<int>(SaturationMode::ON);
    const RoundMode mode = static_cast<RoundMode>(step.operands.word);
    for (size_t at = 0; at < from.size(); ++at) {
        const Converted converted = convert(from.dtype, from.bits[at], to.dtype, mode);
        if (from.dtype == to.dtype) {
            to.bits[at] = real_bits(to.dtype, static_cast<float>(rounded(real_of(from.dtype, from.bits[at]), mode)));
        } else {
            to.bits[at] = converted.bits;
        }
        to.doubts[at] = from.doubts[at];
        if (!to.doubts[at] && !converted.fits && !saturates) to.doubts[at] = static_cast<uint8_t>(Doubt::out_of_range);
    }
    if (step.n_tiles() > 2) step.scratch(2);
    step.write(0, to);
}

}  // namespace

std::vector<Entry> compare_entries() {
    return {{"TCMP", compare}, {"TCMPS", compare}, {"TSEL", select, true}, {"TSELS", select, true}, {"TCVT", cast, true}};
}

}  // namespace pto::emu
