// Reductions along rows, to [R, 1], and along columns, to [1, C]. Numbers are taken in pairs, each step rounded to the dtype.

#include <string>

#include "step.h"

namespace pto::emu {

namespace {

using Combine = uint64_t (*)(Dtype, uint64_t, uint64_t);

template <typename Real, typename Whole>
uint64_t combined(Dtype dtype, uint64_t a, uint64_t b, Real real, Whole whole) {
    if (is_float(dtype)) return real_bits(dtype, real(real_of(dtype, a), real_of(dtype, b)));
    return whole_bits(dtype, whole(whole_of(dtype, a), whole_of(dtype, b)));
}

uint64_t sum(Dtype dtype, uint64_t a, uint64_t b) {
    return combined(dtype, a, b, [](float x, float y) { return x + y; }, [](int64_t x, int64_t y) { return x + y; });
}
uint64_t product(Dtype dtype, uint64_t a, uint64_t b) {
    return combined(dtype, a, b, [](float x, float y) { return x * y; }, [](int64_t x, int64_t y) { return x * y; });
}
uint64_t most(Dtype dtype, uint64_t a, uint64_t b) {
    return combined(dtype, a, b, [](float x, float y) { return y > x || x != x ? y : x; },
                    [](int64_t x, int64_t y) { return y > x ? y : x; });
}
uint64_t least(Dtype dtype, uint64_t a, uint64_t b) {
    return combined(dtype, a, b, [](float x, float y) { return y < x || x != x ? y : x; },
                    [](int64_t x, int64_t y) { return y < x ? y : x; });
}

struct Function {
    const char *op;
    Combine combine;
};
const Function kFunctions[] = {
    {"TROWSUM", sum}, {"TROWMAX", most}, {"TROWMIN", least}, {"TROWPROD", product},
    {"TCOLSUM", sum}, {"TCOLMAX", most}, {"TCOLMIN", least}, {"TCOLPROD", product},
};

Combine find(const char *op) {
    const Function *function = kFunctions;
    while (std::string(function->op) != op) ++function;
    return function->combine;
}

uint64_t over(std::vector<uint64_t> numbers, Dtype dtype, Combine combine) {
    while (numbers.size() > 1) {
        std::vector<uint64_t> next;
        for (size_t at = 0; at + 1 < numbers.size(); at += 2) next.push_back(combine(dtype, numbers[at], numbers[at + 1]));
        if (numbers.size() % 2) next.push_back(numbers.back());
        numbers.swap(next);
    }
    return numbers[0];
}

std::vector<uint64_t> row_of(const Grid &grid, int row) {
    return {grid.bits.begin() + grid.at(row, 0), grid.bits.begin() + grid.at(row, 0) + grid.cols};
}

std::vector<uint64_t> col_of(const Grid &grid, int col) {
    std::vector<uint64_t> numbers;
    for (int row = 0; row < grid.rows; ++row) numbers.push_back(grid.bits[grid.at(row, col)]);
    return numbers;
}

void check_result(const Step &step, int i, int src, bool rows) {
    if (rows) {
        step.check_column(i);
        step.check_valid(i, step.tile(src).valid_rows, 1);
    } else {
        step.check_vector(i);
        step.check_valid(i, 1, step.tile(src).valid_cols);
    }
}

void reduce(const Step &step) {
    const bool rows = step.site.op[1] == 'R';
    step.check_vector(1);
    check_result(step, 0, 1, rows);
    step.check_same_dtype(0, 1);
    const Dtype dtype = step.tile(1).dtype;
    step.check_dtype(dtype);
    step.start(PIPE_V);
    const Grid from = step.read_known(1, "reduces");
    Grid to(dtype, rows ? from.rows : 1, rows ? 1 : from.cols);
    const Combine combine = find(step.site.op);
    for (size_t at = 0; at < to.size(); ++at) {
        const int line = static_cast<int>(at);
        to.bits[at] = over(rows ? row_of(from, line) : col_of(from, line), dtype, combine);
    }
    if (step.n_tiles() > 2) {
        step.check_vector(2);
        step.check_same_dtype(1, 2);
        step.scratch(2);
    }
    step.write(0, to);
}

// The first of equal numbers is taken. With four tiles, the number as well as its place.
void reduce_place(const Step &step) {
    const bool rows = step.site.op[1] == 'R', largest = std::string(step.site.op).find("MAX") != std::string::npos;
    const int src = step.n_tiles() == 4 ? 2 : 1, place = src - 1;
    step.check_vector(src);
    for (int i = 0; i < src; ++i) check_result(step, i, src, rows);
    const Dtype index = step.tile(place).dtype, dtype = step.tile(src).dtype;
    step.require(index == Dtype::i32 || index == Dtype::u32, "places are i32 or u32, not " + std::string(name_of(index)));
    if (src == 2) step.check_same_dtype(0, src);
    step.check_dtype(dtype);
    step.start(PIPE_V);
    const Grid from = step.read_known(src, "reduces");
    Grid places(index, rows ? from.rows : 1, rows ? 1 : from.cols);
    Grid values(dtype, places.rows, places.cols);
    for (size_t line = 0; line < places.size(); ++line) {
        const std::vector<uint64_t> numbers = rows ? row_of(from, static_cast<int>(line)) : col_of(from, static_cast<int>(line));
        size_t best = 0;
        for (size_t at = 1; at < numbers.size(); ++at) {
            const uint64_t one = numbers[best], other = numbers[at];
            const bool equal = is_float(dtype) ? real_of(dtype, one) == real_of(dtype, other) : one == other;
            if ((largest ? most : least)(dtype, one, other) == other && !equal) best = at;
        }
        places.bits[line] = best;
        values.bits[line] = numbers[best];
    }
    step.scratch(src + 1);
    step.write(place, places);
    if (src == 2) step.write(0, values);
}

}  // namespace

std::vector<Entry> reduce_entries() {
    std::vector<Entry> entries;
    for (const Function &function : kFunctions) entries.push_back({function.op, reduce});
    for (const char *op : {"TROWARGMAX", "TROWARGMIN", "TCOLARGMAX", "TCOLARGMIN"}) entries.push_back({op, reduce_place});
    return entries;
}

}  // namespace pto::emu
