// Instructions that make each element from the elements in its place. Halves are computed in f32 and rounded once.

#include <cmath>

#include "check/rules.h"

namespace pto::emu {

namespace {

struct Math {
    float (*real)(float, float, float);
    int64_t (*whole)(int64_t, int64_t, int64_t);
};

struct Function {
    const char *op;
    int sources;     // tiles that are read, the destination not counted
    bool onto;       // the destination is read as well: the third number
    bool scratch;    // the last tile is scratch
    Math math;
};

int64_t never(int64_t, int64_t, int64_t) { return 0; }
float nowhere(float, float, float) { return 0; }

// min and max with a NaN give the other: what the instruction page leaves open.
float least(float a, float b, float = 0) { return b < a || std::isnan(a) ? b : a; }
float most(float a, float b, float = 0) { return b > a || std::isnan(a) ? b : a; }
float relu(float a, float = 0, float = 0) { return most(a, 0.0f); }
int64_t whole_relu(int64_t a, int64_t, int64_t) { return a > 0 ? a : 0; }
float rest_floor(float a, float b, float) {
    const float rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
int64_t whole_power(int64_t a, int64_t b, int64_t) {
    int64_t power = 1;
    for (int64_t i = 0; i < b; ++i) power *= a;
    return power;
}

#define REAL(EXPR) [](float a, float b, float c) -> float { (void)a, (void)b, (void)c; return EXPR; }
#define WHOLE(EXPR) [](int64_t a, int64_t b, int64_t c) -> int64_t { (void)a, (void)b, (void)c; return EXPR; }

const Function kFunctions[] = {
    {"TABS", 1, false, false, {REAL(std::fabs(a)), WHOLE(a < 0 ? -a : a)}},
    {"TNEG", 1, false, false, {REAL(-a), WHOLE(-a)}},
    {"TNOT", 1, false, false, {nowhere, WHOLE(~a)}},
    {"TEXP", 1, false, false, {REAL(std::exp(a)), never}},
    {"TLOG", 1, false, false, {REAL(std::log(a)), never}},
    {"TSQRT", 1, false, false, {REAL(std::sqrt(a)), never}},
    {"TRSQRT", 1, false, false, {REAL(1.0f / std::sqrt(a)), never}},
    {"TRECIP", 1, false, false, {REAL(1.0f / a), never}},
    {"TRELU", 1, false, false, {relu, whole_relu}},
    {"TADD", 2, false, false, {REAL(a + b), WHOLE(a + b)}},
    {"TSUB", 2, false, false, {REAL(a - b), WHOLE(a - b)}},
    {"TMUL", 2, false, false, {REAL(a * b), WHOLE(a * b)}},
    {"TDIV", 2, false, false, {REAL(a / b), WHOLE(b == 0 ? 0 : a / b)}},
    {"TMAX", 2, false, false, {most, WHOLE(a > b ? a : b)}},
    {"TMIN", 2, false, false, {least, WHOLE(a < b ? a : b)}},
    {"TAND", 2, false, false, {nowhere, WHOLE(a & b)}},
    {"TOR", 2, false, false, {nowhere, WHOLE(a | b)}},
    {"TXOR", 2, false, true, {nowhere, WHOLE(a ^ b)}},
    {"TSHL", 2, false, false, {nowhere, WHOLE(static_cast<int64_t>(static_cast<uint64_t>(a) << (b & 63)))}},
    {"TSHR", 2, false, false, {nowhere, WHOLE(a >> (b & 63))}},
    {"TFMOD", 2, false, false, {REAL(std::fmod(a, b)), WHOLE(b == 0 ? 0 : a % b)}},
    {"TREM", 2, false, true, {rest_floor, WHOLE(b == 0 ? 0 : (a % b + b) % b)}},
    {"TPRELU", 2, false, true, {REAL(a > 0 ? a : a * b), WHOLE(a > 0 ? a : a * b)}},
    {"TPOW", 2, false, true, {REAL(std::pow(a, b)), whole_power}},
    {"TSUBRELU", 2, false, false, {REAL(most(a - b, 0.0f)), WHOLE(a > b ? a - b : 0)}},
    {"TMULADDDST", 2, true, false, {REAL(a * b + c), WHOLE(a * b + c)}},
    {"TFUSEDMULADD", 2, true, false, {REAL(c * a + b), WHOLE(c * a + b)}},
    {"TFUSEDMULADDRELU", 2, true, false, {REAL(most(c * a + b, 0.0f)), WHOLE(c * a + b > 0 ? c * a + b : 0)}},
};

uint64_t apply(const Math &math, Dtype dtype, uint64_t a, uint64_t b, uint64_t c) {
    if (is_float(dtype)) return real_bits(dtype, math.real(real_of(dtype, a), real_of(dtype, b), real_of(dtype, c)));
    return whole_bits(dtype, math.whole(whole_of(dtype, a), whole_of(dtype, b), whole_of(dtype, c)));
}

uint8_t worse(uint8_t a, uint8_t b) { return a ? a : b; }

void elementwise(const Step &step) {
    const Function *function = kFunctions;
    while (std::string(function->op) != step.site.op) ++function;
    const bool extra = step.n_tiles() > 1 + function->sources;
    for (int i = 0; i <= function->sources; ++i) {
        step.check_vector(i);
        step.check_same_valid(0, i);
        step.check_same_dtype(0, i);
    }
    step.check_dtype(step.tile(0).dtype);
    step.start(PIPE_V);
    const Grid a = step.read(1), b = step.read(function->sources), c = function->onto ? step.read(0) : a;
    check_values(step, 2, b);
    Grid result(a.dtype, a.rows, a.cols);
    for (size_t at = 0; at < a.size(); ++at) {
        result.bits[at] = apply(function->math, a.dtype, a.bits[at], b.bits[at], c.bits[at]);
        result.doubts[at] = worse(worse(a.doubts[at], b.doubts[at]), c.doubts[at]);
    }
    if (extra) {
        step.check_vector(1 + function->sources);
        step.scratch(1 + function->sources);
    }
    step.write(0, result);
}

// Where only one source is valid, that one.
void part(const Step &step) {
    for (int i = 0; i < 3; ++i) {
        step.check_vector(i);
        step.check_same_dtype(0, i);
        step.require(step.tile(i).valid_rows <= step.tile(0).valid_rows && step.tile(i).valid_cols <= step.tile(0).valid_cols,
                     "operand " + std::to_string(i + 1) + " has a larger valid part than the destination");
    }
    step.check_dtype(step.tile(0).dtype);
    step.start(PIPE_V);
    const std::string op = std::string(step.site.op).replace(1, 4, "");
    const Function *function = kFunctions;
    while (op != function->op) ++function;
    const Grid a = step.read(1), b = step.read(2);
    Grid result(a.dtype, step.tile(0).valid_rows, step.tile(0).valid_cols);
    for (int row = 0; row < result.rows; ++row) {
        for (int col = 0; col < result.cols; ++col) {
            const bool in_a = row < a.rows && col < a.cols, in_b = row < b.rows && col < b.cols;
            step.require(in_a || in_b, "an element of the destination is in no source");
            const size_t to = result.at(row, col);
            const Grid &one = in_a ? a : b;
            const size_t from = one.at(row, col);
            result.bits[to] = one.bits[from];
            result.doubts[to] = one.doubts[from];
            if (in_a && in_b) {
                result.bits[to] = apply(function->math, a.dtype, a.bits[from], b.bits[b.at(row, col)], 0);
                result.doubts[to] = worse(a.doubts[from], b.doubts[b.at(row, col)]);
            }
        }
    }
    step.write(0, result);
}

}  // namespace

std::vector<Entry> elementwise_entries() {
    std::vector<Entry> entries;
    for (const Function &function : kFunctions) entries.push_back({function.op, elementwise, true});
    for (const char *op : {"TPARTADD", "TPARTMAX", "TPARTMIN", "TPARTMUL"}) entries.push_back({op, part, true});
    return entries;
}

}  // namespace pto::emu
