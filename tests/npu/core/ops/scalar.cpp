// Instructions that combine each element with one number, which first takes the dtype of the tile.

#include <cmath>
#include <string>

#include "check/rules.h"

namespace pto::emu {

namespace {

struct Function {
    const char *op;
    float (*real)(float, float, float);           // the element, the number, the element of a further tile
    int64_t (*whole)(int64_t, int64_t, int64_t);
    char third;                                   // ' ': none; 's': scratch; 'r': a second source; 'd': the destination is read
};

#define REAL(EXPR) [](float a, float s, float c) -> float { (void)a, (void)s, (void)c; return EXPR; }
#define WHOLE(EXPR) [](int64_t a, int64_t s, int64_t c) -> int64_t { (void)a, (void)s, (void)c; return EXPR; }

int64_t whole_power(int64_t a, int64_t s) {
    int64_t power = 1;
    for (int64_t i = 0; i < s; ++i) power *= a;
    return power;
}
float rest_floor(float a, float s) {
    const float rest = std::fmod(a, s);
    return rest != 0 && (rest < 0) != (s < 0) ? rest + s : rest;
}

const Function kFunctions[] = {
    {"TADDS", REAL(a + s), WHOLE(a + s), ' '},
    {"TSUBS", REAL(a - s), WHOLE(a - s), ' '},
    {"TMULS", REAL(a * s), WHOLE(a * s), ' '},
    {"TDIVS", REAL(a / s), WHOLE(s == 0 ? 0 : a / s), ' '},
    {"TMAXS", REAL(s > a || std::isnan(a) ? s : a), WHOLE(s > a ? s : a), ' '},
    {"TMINS", REAL(s < a || std::isnan(a) ? s : a), WHOLE(s < a ? s : a), ' '},
    {"TANDS", REAL(0), WHOLE(a & s), ' '},
    {"TORS", REAL(0), WHOLE(a | s), ' '},
    {"TXORS", REAL(0), WHOLE(a ^ s), 's'},
    {"TSHLS", REAL(0), WHOLE(static_cast<int64_t>(static_cast<uint64_t>(a) << (s & 63))), ' '},
    {"TSHRS", REAL(0), WHOLE(a >> (s & 63)), ' '},
    {"TFMODS", REAL(std::fmod(a, s)), WHOLE(s == 0 ? 0 : a % s), ' '},
    {"TREMS", REAL(rest_floor(a, s)), WHOLE(s == 0 ? 0 : (a % s + s) % s), 's'},
    {"TPOWS", REAL(std::pow(a, s)), WHOLE(whole_power(a, s)), 's'},
    {"TLRELU", REAL(a > 0 ? a : a * s), WHOLE(a > 0 ? a : a * s), ' '},
    {"TAXPY", REAL(a * s + c), WHOLE(a * s + c), 'd'},
    {"TADDSC", REAL(a + s + c), WHOLE(a + s + c), 'r'},
    {"TSUBSC", REAL(a - s + c), WHOLE(a - s + c), 'r'},
};

void scalar(const Step &step) {
    const Function *function = kFunctions;
    while (std::string(function->op) != step.site.op) ++function;
    const int sources = function->third == 'r' ? 2 : 1;
    for (int i = 0; i <= sources; ++i) {
        step.check_vector(i);
        step.check_same_valid(0, i);
        step.check_same_dtype(0, i);
    }
    const Dtype dtype = step.tile(0).dtype;
    step.check_dtype(dtype);
    step.start(PIPE_V);
    const Grid a = step.read(1), c = function->third == 'r' ? step.read(2) : function->third == 'd' ? step.read(0) : a;
    check_number(step);
    const uint64_t number = number_bits(dtype, step.operands.number);
    const bool turned = step.operands.word == 1;   // TDIVS: number / element
    Grid result(dtype, a.rows, a.cols);
    for (size_t at = 0; at < a.size(); ++at) {
        const uint64_t left = turned ? number : a.bits[at], right = turned ? a.bits[at] : number;
        result.bits[at] = is_float(dtype)
            ? real_bits(dtype, function->real(real_of(dtype, left), real_of(dtype, right), real_of(dtype, c.bits[at])))
            : whole_bits(dtype, function->whole(whole_of(dtype, left), whole_of(dtype, right), whole_of(dtype, c.bits[at])));
        result.doubts[at] = a.doubts[at] ? a.doubts[at] : c.doubts[at];
    }
    if (function->third == 's') {
        step.check_vector(2);
        step.scratch(2);
    }
    step.write(0, result);
}

void expands(const Step &step) {
    step.check_vector(0);
    const Dtype dtype = step.tile(0).dtype;
    step.check_dtype(dtype);
    step.start(PIPE_V);
    Grid result(dtype, step.tile(0).valid_rows, step.tile(0).valid_cols);
    const uint64_t number = number_bits(dtype, step.operands.number);
    for (uint64_t &bits : result.bits) bits = number;
    step.write(0, result);
}

}  // namespace

std::vector<Entry> scalar_entries() {
    std::vector<Entry> entries;
    for (const Function &function : kFunctions) entries.push_back({function.op, scalar, true});
    entries.push_back({"TEXPANDS", expands});
    return entries;
}

}  // namespace pto::emu
