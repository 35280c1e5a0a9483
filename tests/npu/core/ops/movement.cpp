// Movement of elements from tile to tile, and tiles that see the room of another.

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include "step.h"

namespace pto::emu {

namespace {

int step_of(const TileState &tile, bool rows) {
    const int across = static_cast<int>(kBlockBytes) / bytes_of(tile.dtype);
    if (tile.inner == SLayout::NoneBox) return rows ? 1 : across;
    return (tile.inner == SLayout::RowMajor) == rows ? 16 : across;
}

pipe_t pipe_between(const Step &step, TileType to, TileType from) {
    if (from == TileType::Vec && to == TileType::Vec) return PIPE_V;
    if (from == TileType::Mat && (to == TileType::Left || to == TileType::Right || to == TileType::Bias)) return PIPE_MTE1;
    if (from == TileType::Acc && to == TileType::Mat) return PIPE_FIX;
    fail(step.site, "there is no way between the memories of these tiles");
}

void check_pair(const Step &step) {
    step.check_tile(0);
    step.check_tile(1);
    step.check_same_dtype(1, 0);
    step.check_dtype(step.tile(1).dtype);
}

void move(const Step &step) {
    check_pair(step);
    step.check_same_valid(1, 0);
    if (step.tile(0).type == TileType::Vec && step.tile(1).type == TileType::Vec) {
        step.check_vector(0);
        step.check_vector(1);
    }
    step.start(pipe_between(step, step.tile(0).type, step.tile(1).type));
    const Grid grid = step.read(1);
    if (step.n_tiles() > 2) step.scratch(2);
    step.write(0, grid);
}

// A part of the larger tile, from a row and a column on; to it, or from it.
void corner(const Step &step) {
    check_pair(step);
    const bool inserts = step.site.op[1] == 'I';
    const int large = inserts ? 0 : 1, small = 1 - large;
    const int row = static_cast<int>(step.operands.word), col = static_cast<int>(step.operands.word2);
    const int rows = step.tile(small).valid_rows, cols = step.tile(small).valid_cols;
    step.require(row >= 0 && col >= 0 && row + rows <= step.tile(large).rows && col + cols <= step.tile(large).cols,
                 "[" + std::to_string(rows) + ", " + std::to_string(cols) + "] at row " + std::to_string(row) + ", column " +
                     std::to_string(col) + " lies outside the larger tile");
    const int by_rows = step_of(step.tile(large), true), by_cols = step_of(step.tile(large), false);
    step.require(row % by_rows == 0 && col % by_cols == 0, "row " + std::to_string(row) + " and column " + std::to_string(col) +
                 " are no multiples of " + std::to_string(by_rows) + " and " + std::to_string(by_cols));
    step.start(pipe_between(step, step.tile(0).type, step.tile(1).type));
    if (inserts) step.write_at(0, row, col, step.read(1));
    else step.write(0, step.read_at(1, row, col, rows, cols));
}

void transpose(const Step &step) {
    check_pair(step);
    step.check_vector(0);
    step.check_vector(1);
    step.check_valid(0, step.tile(1).valid_cols, step.tile(1).valid_rows);
    step.start(PIPE_V);
    const Grid from = step.read(1);
    Grid to(from.dtype, from.cols, from.rows);
    for (int row = 0; row < from.rows; ++row) {
        for (int col = 0; col < from.cols; ++col) {
            to.bits[to.at(col, row)] = from.bits[from.at(row, col)];
            to.doubts[to.at(col, row)] = from.doubts[from.at(row, col)];
        }
    }
    step.scratch(2);
    step.write(0, to);
}

void reshape(const Step &step) {
    step.check_tile(1);
    step.require(step.tile(0).type == step.tile(1).type && storage_bytes(step.tile(0)) == storage_bytes(step.tile(1)),
                 "the tiles differ in their memory or in their bytes");
    step.tile(0).address = step.tile(1).address;
    step.tile(0).assigned = true;
    step.check_tile(0);
}

void subview(const Step &step) {
    step.check_vector(1);
    const TileState &from = step.tile(1);
    TileState &to = step.tile(0);
    const int row = static_cast<int>(step.operands.word), col = static_cast<int>(step.operands.word2);
    step.require(to.type == from.type && to.dtype == from.dtype && to.cols == from.cols, "the tiles differ in memory, dtype or row length");
    step.require(row >= 0 && col >= 0 && row + to.valid_rows <= from.rows && col + to.valid_cols <= from.cols,
                 "the part lies outside the larger tile");
    to.address = from.address + (static_cast<uint64_t>(row) * from.cols + col) * bytes_of(from.dtype);
    to.assigned = true;
    step.require(to.address % kBlockBytes == 0, "the part lies at no multiple of 32 bytes");
}

uint64_t pad_bits(const Step &step, const TileState &tile) {
    const int places = 8 * bytes_of(tile.dtype);
    const bool is_signed = tile.dtype == Dtype::i8 || tile.dtype == Dtype::i16 || tile.dtype == Dtype::i32 || tile.dtype == Dtype::i64;
    const float infinity = std::numeric_limits<float>::infinity();
    switch (tile.pad) {
        case PadValue::Zero: return 0;
        case PadValue::Max:
            if (is_float(tile.dtype)) return real_bits(tile.dtype, infinity);
            return ~uint64_t{0} >> (64 - places + (is_signed ? 1 : 0));
        case PadValue::Min:
            if (is_float(tile.dtype)) return real_bits(tile.dtype, -infinity);
            return is_signed ? uint64_t{1} << (places - 1) : 0;
        case PadValue::Null: break;
    }
    fail(step.site, "the destination's type names no pad value");
}

void fill_pad(const Step &step) {
    check_pair(step);
    step.check_vector(0);
    step.check_vector(1);
    const TileState &to = step.tile(0), &from = step.tile(1);
    step.require(from.valid_rows <= to.valid_rows && from.valid_cols <= to.valid_cols, "the source is larger than the destination");
    step.start(PIPE_V);
    const Grid grid = step.read(1);
    Grid result(to.dtype, to.valid_rows, to.valid_cols);
    for (uint64_t &bits : result.bits) bits = pad_bits(step, to);
    for (int row = 0; row < grid.rows; ++row) {
        for (int col = 0; col < grid.cols; ++col) {
            result.bits[result.at(row, col)] = grid.bits[grid.at(row, col)];
            result.doubts[result.at(row, col)] = grid.doubts[grid.at(row, col)];
        }
    }
    step.write(0, result);
}

// Rows of all sources, one after the other, dealt out to the destinations: element i of the whole goes where `deal` says.
struct Line {
    std::vector<uint64_t> bits;
    std::vector<uint8_t> doubts;
};

Line joined(const std::vector<Grid> &grids, int row) {
    Line line;
    for (const Grid &grid : grids) {
        line.bits.insert(line.bits.end(), grid.bits.begin() + grid.at(row, 0), grid.bits.begin() + grid.at(row, 0) + grid.cols);
        line.doubts.insert(line.doubts.end(), grid.doubts.begin() + grid.at(row, 0), grid.doubts.begin() + grid.at(row, 0) + grid.cols);
    }
    return line;
}

void deal(const Step &step, int n_to, size_t (*place)(size_t at, size_t count)) {
    int from_cols = 0, to_cols = 0;
    for (int i = 0; i < step.n_tiles(); ++i) {
        step.check_vector(i);
        step.check_same_dtype(0, i);
        step.require(step.tile(i).valid_rows == step.tile(0).valid_rows, "the tiles differ in their valid rows");
        (i < n_to ? to_cols : from_cols) += step.tile(i).valid_cols;
    }
    step.require(from_cols == to_cols,
                 "the sources have " + std::to_string(from_cols) + " columns, the destinations " + std::to_string(to_cols));
    step.check_dtype(step.tile(0).dtype);
    step.start(PIPE_V);
    std::vector<Grid> from, to;
    for (int i = 0; i < step.n_tiles(); ++i) {
        if (i < n_to) to.emplace_back(step.tile(i).dtype, step.tile(i).valid_rows, step.tile(i).valid_cols);
        else from.push_back(step.read(i));
    }
    const size_t count = static_cast<size_t>(from_cols);
    for (int row = 0; row < step.tile(0).valid_rows; ++row) {
        const Line line = joined(from, row);
        for (size_t at = 0; at < count; ++at) {
            size_t col = place(at, count), which = 0;
            for (; col >= static_cast<size_t>(to[which].cols); ++which) col -= static_cast<size_t>(to[which].cols);
            to[which].bits[to[which].at(row, static_cast<int>(col))] = line.bits[at];
            to[which].doubts[to[which].at(row, static_cast<int>(col))] = line.doubts[at];
        }
    }
    for (int i = 0; i < n_to; ++i) step.write(i, to[static_cast<size_t>(i)]);
}

void concat(const Step &step) { deal(step, 1, [](size_t at, size_t) { return at; }); }
void interleave(const Step &step) {
    deal(step, 2, [](size_t at, size_t count) { return at < count / 2 ? 2 * at : 2 * (at - count / 2) + 1; });
}
void deinterleave(const Step &step) {
    deal(step, 2, [](size_t at, size_t count) { return at % 2 == 0 ? at / 2 : count / 2 + at / 2; });
}

void pair_sum(const Step &step) {
    check_pair(step);
    step.check_vector(0);
    step.check_vector(1);
    step.start(PIPE_V);
    const Grid from = step.read_known(1, "adds");
    // Sums stand in front; what is behind them means nothing.
    Grid to(from.dtype, from.rows, from.cols);
    std::fill(to.doubts.begin(), to.doubts.end(), static_cast<uint8_t>(Doubt::never_written));
    for (int row = 0; row < to.rows; ++row) {
        for (int col = 0; col < to.cols / 2; ++col) {
            to.doubts[to.at(row, col)] = 0;
            to.bits[to.at(row, col)] = real_bits(to.dtype, real_of(to.dtype, from.bits[from.at(row, 2 * col)]) +
                                                               real_of(to.dtype, from.bits[from.at(row, 2 * col + 1)]));
        }
    }
    step.write(0, to);
}

void print(const Step &step) {
    step.check_vector(0);
    step.check_dtype(step.tile(0).dtype);
    step.start(PIPE_S);
    const Grid grid = step.read_known(0, "prints");
    for (int row = 0; row < grid.rows; ++row) {
        for (int col = 0; col < grid.cols; ++col) {
            std::printf("%g ", static_cast<double>(real_of(grid.dtype, grid.bits[grid.at(row, col)])));
        }
        std::printf("\n");
    }
}

void assign(const Step &step) { step.check_tile(0); }

}  // namespace

std::vector<Entry> movement_entries() {
    return {{"TMOV", move}, {"TEXTRACT", corner}, {"TINSERT", corner}, {"TTRANS", transpose}, {"TRESHAPE", reshape, true},
            {"TSUBVIEW", subview, true}, {"TFILLPAD", fill_pad}, {"TFILLPAD_EXPAND", fill_pad}, {"TFILLPAD_INPLACE", fill_pad, true},
            {"TCONCAT", concat}, {"TINTERLEAVE", interleave}, {"TDEINTERLEAVE", deinterleave}, {"TPAIRREDUCESUM", pair_sum},
            {"TPRINT", print}, {"TASSIGN", assign}};
}

}  // namespace pto::emu
