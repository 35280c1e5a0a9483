// Sorting and merging of pairs, gathering and scattering, and tiles made from indices.

#include <algorithm>
#include <string>

#include "step.h"

namespace pto::emu {

namespace {

constexpr int kSorted = 32;      // elements that TSORT32 sorts at once
constexpr int kPairBytes = 8;    // a value, widened to four bytes, and its index

bool above(Dtype dtype, uint64_t a, uint64_t b) {
    return is_float(dtype) ? real_of(dtype, a) > real_of(dtype, b) : whole_of(dtype, a) > whole_of(dtype, b);
}

// Elements of a row of pairs: the value, where it is a half nothing, and the index in what is left of eight bytes.
void put_pair(Grid &grid, int row, int pair, uint64_t value, uint64_t index) {
    const int words = kPairBytes / bytes_of(grid.dtype), first = pair * words;
    for (int word = 0; word < words; ++word) grid.bits[grid.at(row, first + word)] = 0;
    grid.bits[grid.at(row, first)] = value;
    if (words == 2) {
        grid.bits[grid.at(row, first + 1)] = index;
    } else {
        grid.bits[grid.at(row, first + 2)] = index & 0xffff;
        grid.bits[grid.at(row, first + 3)] = index >> 16;
    }
}

void sort32(const Step &step) {
    for (int i = 0; i < 3; ++i) step.check_vector(i);
    const TileState &src = step.tile(1);
    const int words = kPairBytes / bytes_of(src.dtype);
    step.check_dtype(src.dtype);
    step.check_same_dtype(1, 0);
    step.check_same_valid(1, 2);
    step.require(step.tile(2).dtype == Dtype::u32, "indices are u32, not " + std::string(name_of(step.tile(2).dtype)));
    step.require(src.valid_cols % kSorted == 0, std::to_string(src.valid_cols) + " columns are no multiple of 32");
    step.check_valid(0, src.valid_rows, src.valid_cols * words);
    step.start(PIPE_V);
    const Grid values = step.read_known(1, "sorts"), indices = step.read_known(2, "sorts");
    Grid result(src.dtype, values.rows, values.cols * words);
    for (int row = 0; row < values.rows; ++row) {
        for (int block = 0; block < values.cols; block += kSorted) {
            std::vector<int> order;
            for (int col = block; col < block + kSorted; ++col) order.push_back(col);
            std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
                return above(values.dtype, values.bits[values.at(row, a)], values.bits[values.at(row, b)]);
            });
            for (int at = 0; at < kSorted; ++at) {
                put_pair(result, row, block + at, values.bits[values.at(row, order[static_cast<size_t>(at)])],
                         indices.bits[indices.at(row, order[static_cast<size_t>(at)])]);
            }
        }
    }
    if (step.n_tiles() > 3) step.scratch(3);
    step.write(0, result);
}

// Every four neighbouring blocks of pairs, each sorted, become one.
void merge(const Step &step) {
    step.check_vector(0);
    step.check_vector(1);
    step.check_same_dtype(1, 0);
    step.check_same_valid(1, 0);
    const Dtype dtype = step.tile(1).dtype;
    step.check_dtype(dtype);
    const int block = static_cast<int>(step.operands.word), cols = step.tile(1).valid_cols, words = kPairBytes / bytes_of(dtype);
    step.require(step.tile(1).valid_rows == 1, "it merges one row");
    step.require(block > 0 && block % (kSorted * words) == 0,
                 "blocks of " + std::to_string(block) + " words are not made of 32 pairs each");
    step.require(cols % (4 * block) == 0, std::to_string(cols) + " words are not made of four blocks of " + std::to_string(block));
    step.start(PIPE_V);
    const Grid from = step.read_known(1, "merges");
    Grid to(dtype, 1, cols);
    const auto value = [&](int pair) { return from.bits[static_cast<size_t>(pair) * words]; };
    for (int first = 0; first < cols; first += 4 * block) {
        std::vector<int> pairs;
        for (int pair = first / words; pair < (first + 4 * block) / words; ++pair) {
            step.require(pair % (block / words) == 0 || !above(dtype, value(pair), value(pair - 1)), "a block is not sorted");
            pairs.push_back(pair);
        }
        std::stable_sort(pairs.begin(), pairs.end(), [&](int a, int b) { return above(dtype, value(a), value(b)); });
        for (size_t at = 0; at < pairs.size(); ++at) {
            for (int word = 0; word < words; ++word) {
                to.bits[static_cast<size_t>(first) + at * words + word] = from.bits[static_cast<size_t>(pairs[at]) * words + word];
            }
        }
    }
    step.write(0, to);
}

// Of every two, or four, elements of a row those that the pattern names, its last digit the first element.
void gather_pattern(const Step &step) {
    static const struct { int every, keep; } patterns[] = {{2, 1}, {2, 2}, {4, 1}, {4, 2}, {4, 4}, {4, 8}, {1, 1}};
    const auto [every, keep] = patterns[step.operands.word];
    step.check_vector(0);
    step.check_vector(1);
    const TileState &src = step.tile(1);
    step.require(bytes_of(step.tile(0).dtype) == bytes_of(src.dtype), "the tiles differ in the width of their elements");
    step.require(src.valid_cols % every == 0, std::to_string(src.valid_cols) + " columns are no multiple of " + std::to_string(every));
    step.check_valid(0, src.valid_rows, src.valid_cols / every);
    step.check_dtype(src.dtype);
    step.start(PIPE_V);
    const Grid from = step.read(1);
    Grid to(step.tile(0).dtype, from.rows, from.cols / every);
    for (int row = 0; row < from.rows; ++row) {
        for (int col = 0; col < from.cols; ++col) {
            if (!(keep >> col % every & 1)) continue;
            to.bits[to.at(row, col / every)] = from.bits[from.at(row, col)];
            to.doubts[to.at(row, col / every)] = from.doubts[from.at(row, col)];
        }
    }
    step.write(0, to);
}

int64_t index_in(const Step &step, const Grid &indices, size_t at, int64_t count) {
    const int64_t index = whole_of(indices.dtype, indices.bits[at]);
    step.require(index >= 0 && index < count, "index " + std::to_string(index) + " is none of " + std::to_string(count) + " elements");
    return index;
}

// Each index counts elements of the source's storage.
void gather(const Step &step) {
    if (step.n_tiles() == 2) return gather_pattern(step);
    for (int i = 0; i < 3; ++i) step.check_vector(i);
    step.check_same_dtype(1, 0);
    step.check_same_valid(0, 2);
    step.check_dtype(step.tile(1).dtype);
    const Dtype index = step.tile(2).dtype;
    step.require(index == Dtype::i32 || index == Dtype::u32 || index == Dtype::i16 || index == Dtype::u16, "indices are integers");
    step.start(PIPE_V);
    const Grid from = step.read_storage(1), indices = step.read_known(2, "takes indices from");
    Grid to(from.dtype, indices.rows, indices.cols);
    for (size_t at = 0; at < to.size(); ++at) {
        const size_t place = static_cast<size_t>(index_in(step, indices, at, static_cast<int64_t>(from.size())));
        to.bits[at] = from.bits[place];
        to.doubts[at] = from.doubts[place];
    }
    if (step.n_tiles() > 3) step.scratch(3);
    step.write(0, to);
}

// Blocks of 32 bytes, each from an offset in bytes.
void gather_blocks(const Step &step) {
    for (int i = 0; i < 3; ++i) step.check_vector(i);
    step.check_same_dtype(1, 0);
    const int across = static_cast<int>(kBlockBytes) / bytes_of(step.tile(0).dtype);
    step.require(step.tile(0).valid_cols % across == 0, "the destination has no whole blocks of 32 bytes");
    step.check_valid(2, step.tile(0).valid_rows, step.tile(0).valid_cols / across);
    step.require(step.tile(2).dtype == Dtype::u32, "offsets are u32");
    step.start(PIPE_V);
    const Grid from = step.read_storage(1), offsets = step.read_known(2, "takes offsets from");
    Grid to(from.dtype, step.tile(0).valid_rows, step.tile(0).valid_cols);
    for (size_t at = 0; at < to.size(); ++at) {
        const uint64_t offset = offsets.bits[at / across];
        step.require(offset % kBlockBytes == 0 && offset + kBlockBytes <= storage_bytes(step.tile(1)),
                     "an offset is no block of the source");
        const size_t place = offset / bytes_of(from.dtype) + at % across;
        to.bits[at] = from.bits[place];
        to.doubts[at] = from.doubts[place];
    }
    step.write(0, to);
}

void scatter(const Step &step) {
    for (int i = 0; i < 3; ++i) step.check_vector(i);
    step.check_same_dtype(1, 0);
    step.check_same_valid(1, 2);
    step.check_dtype(step.tile(1).dtype);
    const Dtype index = step.tile(2).dtype;
    step.require(index == Dtype::i32 || index == Dtype::u32 || index == Dtype::i16 || index == Dtype::u16, "indices are integers");
    step.start(PIPE_V);
    const Grid from = step.read(1), indices = step.read_known(2, "takes indices from");
    Grid to = step.read_storage(0);
    for (size_t at = 0; at < from.size(); ++at) {
        const size_t place = static_cast<size_t>(index_in(step, indices, at, static_cast<int64_t>(to.size())));
        to.bits[place] = from.bits[at];
        to.doubts[place] = from.doubts[at];
    }
    step.write(0, to);
}

void count_up(const Step &step) {
    step.check_vector(0);
    const Dtype dtype = step.tile(0).dtype;
    step.check_dtype(dtype);
    step.require(step.tile(0).valid_rows == 1, "it counts along one row");
    step.start(PIPE_V);
    Grid row(dtype, 1, step.tile(0).valid_cols);
    const int sign = step.operands.word == 1 ? -1 : 1;
    const Number &start = step.operands.number;
    for (int col = 0; col < row.cols; ++col) {
        const float real = static_cast<float>(start.real) + static_cast<float>(sign * col);
        row.bits[static_cast<size_t>(col)] = is_float(dtype) ? real_bits(dtype, real) : whole_bits(dtype, start.whole + sign * col);
    }
    if (step.n_tiles() > 1) step.scratch(1);
    step.write(0, row);
}

void triangle(const Step &step) {
    step.check_vector(0);
    const Dtype dtype = step.tile(0).dtype;
    step.check_dtype(dtype);
    step.start(PIPE_V);
    Grid grid(dtype, step.tile(0).valid_rows, step.tile(0).valid_cols);
    const int diagonal = static_cast<int>(step.operands.number.whole);
    for (int row = 0; row < grid.rows; ++row) {
        for (int col = 0; col < grid.cols; ++col) {
            const bool one = step.operands.word == 1 ? col >= row + diagonal : col <= row + diagonal;
            grid.bits[grid.at(row, col)] = number_bits(dtype, Number(one ? 1 : 0));
        }
    }
    step.write(0, grid);
}

}  // namespace

std::vector<Entry> order_entries() {
    return {{"TSORT32", sort32}, {"TMRGSORT", merge}, {"TGATHER", gather}, {"TGATHERB", gather_blocks}, {"TSCATTER", scatter},
            {"TCI", count_up}, {"TTRI", triangle}};
}

}  // namespace pto::emu
