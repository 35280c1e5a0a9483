// Products: sums of f32 from floats, of i32 from i8.

#include <string>

#include "step.h"

namespace pto::emu {

namespace {

struct Product {
    int sum_in = -1;   // the tile that the product is added to
    int left = 1, right = 2;
    int bias = -1;
};

Grid multiplied(const Grid &left, const Grid &right, Dtype dtype) {
    Grid result(dtype, left.rows, right.cols);
    std::vector<double> a(left.size()), b(right.size()), line(static_cast<size_t>(right.cols));
    const auto number = [](const Grid &grid, size_t at) {
        return is_float(grid.dtype) ? static_cast<double>(real_of(grid.dtype, grid.bits[at]))
                                    : static_cast<double>(whole_of(grid.dtype, grid.bits[at]));
    };
    for (size_t at = 0; at < a.size(); ++at) a[at] = number(left, at);
    for (size_t at = 0; at < b.size(); ++at) b[at] = number(right, at);
    for (int row = 0; row < left.rows; ++row) {
        for (double &sum : line) sum = 0;
        for (int k = 0; k < left.cols; ++k) {
            const double factor = a[left.at(row, k)];
            const double *from = &b[right.at(k, 0)];
            for (size_t col = 0; col < line.size(); ++col) line[col] += factor * from[col];
        }
        for (size_t col = 0; col < line.size(); ++col) {
            result.bits[result.at(row, static_cast<int>(col))] =
                is_float(dtype) ? real_bits(dtype, static_cast<float>(line[col])) : whole_bits(dtype, static_cast<int64_t>(line[col]));
        }
    }
    return result;
}

void add(Grid &to, const Grid &other) {
    for (size_t at = 0; at < to.size(); ++at) {
        const uint64_t more = other.bits[other.rows == 1 && to.rows != 1 ? at % static_cast<size_t>(to.cols) : at];
        to.bits[at] = is_float(to.dtype) ? real_bits(to.dtype, real_of(to.dtype, to.bits[at]) + real_of(to.dtype, more))
                                         : whole_bits(to.dtype, whole_of(to.dtype, to.bits[at]) + whole_of(to.dtype, more));
    }
}

void multiply(const Step &step, const Product &product) {
    const int left = product.left, right = product.right;
    step.check_type(0, TileType::Acc);
    step.check_type(left, TileType::Left);
    step.check_type(right, TileType::Right);
    step.check_same_dtype(left, right);
    step.check_dtype(step.tile(left).dtype);
    const Dtype dtype = is_float(step.tile(left).dtype) ? Dtype::f32 : Dtype::i32;
    step.require(step.tile(0).dtype == dtype, std::string("the sum of ") + name_of(step.tile(left).dtype) + " is " + name_of(dtype) +
                                                  ", not " + name_of(step.tile(0).dtype));
    step.check_valid(right, step.tile(left).valid_cols, step.tile(right).valid_cols);
    step.check_valid(0, step.tile(left).valid_rows, step.tile(right).valid_cols);
    step.start(PIPE_M);
    const Grid a = step.read_known(left, "multiplies"), b = step.read_known(right, "multiplies");
    Grid result = multiplied(a, b, dtype);
    if (product.sum_in >= 0) {
        step.check_type(product.sum_in, TileType::Acc);
        step.check_same_valid(0, product.sum_in);
        step.check_same_dtype(0, product.sum_in);
        add(result, step.read_known(product.sum_in, "adds to"));
    }
    if (product.bias >= 0) {
        step.check_type(product.bias, TileType::Bias);
        step.check_valid(product.bias, 1, step.tile(0).valid_cols);
        step.check_same_dtype(0, product.bias);
        add(result, step.read_known(product.bias, "adds"));
    }
    step.write(0, result);
}

void plain(const Step &step) { multiply(step, {}); }
void accumulate(const Step &step) { multiply(step, {1, 2, 3, -1}); }
void biased(const Step &step) { multiply(step, {-1, 1, 2, 3}); }

}  // namespace

std::vector<Entry> cube_entries() { return {{"TMATMUL", plain}, {"TMATMUL_ACC", accumulate, true}, {"TMATMUL_BIAS", biased}}; }

}  // namespace pto::emu
