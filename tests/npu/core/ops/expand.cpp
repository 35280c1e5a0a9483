// A number for each row, or each column, against a whole tile.

#include <cmath>
#include <string>

#include "step.h"

namespace pto::emu {

namespace {

struct Function {
    const char *word;
    float (*real)(float, float);
    int64_t (*whole)(int64_t, int64_t);
};
const Function kFunctions[] = {
    {"ADD", [](float a, float b) { return a + b; }, [](int64_t a, int64_t b) { return a + b; }},
    {"SUB", [](float a, float b) { return a - b; }, [](int64_t a, int64_t b) { return a - b; }},
    {"MUL", [](float a, float b) { return a * b; }, [](int64_t a, int64_t b) { return a * b; }},
    {"DIV", [](float a, float b) { return a / b; }, [](int64_t a, int64_t b) { return b == 0 ? 0 : a / b; }},
    {"MAX", [](float a, float b) { return b > a || std::isnan(a) ? b : a; }, [](int64_t a, int64_t b) { return b > a ? b : a; }},
    {"MIN", [](float a, float b) { return b < a || std::isnan(a) ? b : a; }, [](int64_t a, int64_t b) { return b < a ? b : a; }},
    {"EXPDIF", [](float a, float b) { return std::exp(a - b); }, [](int64_t a, int64_t b) { return a - b; }},
};

// The numbers of the rows, or columns, of what they are set against.
void check_line(const Step &step, int i, int like, bool rows) {
    if (rows) {
        step.check_column(i);
        step.check_valid(i, step.tile(like).valid_rows, 1);
    } else {
        step.check_vector(i);
        step.check_valid(i, 1, step.tile(like).valid_cols);
    }
    step.check_same_dtype(like, i);
}

void expand(const Step &step) {
    const bool rows = step.site.op[1] == 'R';
    step.check_vector(0);
    check_line(step, 1, 0, rows);
    step.check_dtype(step.tile(0).dtype);
    step.start(PIPE_V);
    const Grid line = step.read(1);
    Grid result(line.dtype, step.tile(0).valid_rows, step.tile(0).valid_cols);
    for (int row = 0; row < result.rows; ++row) {
        for (int col = 0; col < result.cols; ++col) {
            result.bits[result.at(row, col)] = line.bits[rows ? row : col];
            result.doubts[result.at(row, col)] = line.doubts[rows ? row : col];
        }
    }
    step.write(0, result);
}

void expand_with(const Step &step) {
    const bool rows = step.site.op[1] == 'R';
    const Function *function = kFunctions;
    while (std::string(rows ? "TROWEXPAND" : "TCOLEXPAND") + function->word != step.site.op) ++function;
    step.check_vector(0);
    step.check_vector(1);
    step.check_same_valid(0, 1);
    step.check_same_dtype(0, 1);
    check_line(step, 2, 0, rows);
    const Dtype dtype = step.tile(0).dtype;
    step.check_dtype(dtype);
    step.start(PIPE_V);
    const Grid a = step.read(1), line = step.read(2);
    Grid result(dtype, a.rows, a.cols);
    for (int row = 0; row < a.rows; ++row) {
        for (int col = 0; col < a.cols; ++col) {
            const size_t at = a.at(row, col), from = static_cast<size_t>(rows ? row : col);
            const uint64_t one = a.bits[at], other = line.bits[from];
            result.bits[at] = is_float(dtype) ? real_bits(dtype, function->real(real_of(dtype, one), real_of(dtype, other)))
                                              : whole_bits(dtype, function->whole(whole_of(dtype, one), whole_of(dtype, other)));
            result.doubts[at] = a.doubts[at] ? a.doubts[at] : line.doubts[from];
        }
    }
    if (step.n_tiles() > 3) step.scratch(3);
    step.write(0, result);
}

}  // namespace

std::vector<Entry> expand_entries() {
    return {{"TROWEXPAND", expand},           {"TCOLEXPAND", expand},           {"TROWEXPANDADD", expand_with, true},
            {"TCOLEXPANDADD", expand_with, true}, {"TROWEXPANDSUB", expand_with, true}, {"TCOLEXPANDSUB", expand_with, true},
            {"TROWEXPANDMUL", expand_with, true}, {"TCOLEXPANDMUL", expand_with, true}, {"TROWEXPANDDIV", expand_with, true},
            {"TCOLEXPANDDIV", expand_with, true}, {"TROWEXPANDMAX", expand_with, true}, {"TCOLEXPANDMAX", expand_with, true},
            {"TROWEXPANDMIN", expand_with, true}, {"TCOLEXPANDMIN", expand_with, true}, {"TROWEXPANDEXPDIF", expand_with, true},
            {"TCOLEXPANDEXPDIF", expand_with, true}};
}

}  // namespace pto::emu
