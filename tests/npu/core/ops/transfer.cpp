// Between tiles and global memory, which must be elements of the task's arguments.

#include <cstring>
#include <string>

#include "step.h"

namespace pto::emu {

namespace {

Dtype dtype_of(DataType type) {
    switch (type) {
        case DataType::FLOAT32: return Dtype::f32;
        case DataType::FLOAT16: return Dtype::f16;
        case DataType::BFLOAT16: return Dtype::bf16;
        case DataType::INT8: return Dtype::i8;
        case DataType::INT16: return Dtype::i16;
        case DataType::INT32: return Dtype::i32;
        case DataType::INT64: return Dtype::i64;
        case DataType::UINT8: return Dtype::u8;
        case DataType::UINT16: return Dtype::u16;
        case DataType::UINT32: return Dtype::u32;
        case DataType::UINT64: return Dtype::u64;
        case DataType::BOOL: return Dtype::u8;
        case DataType::FP8E4M3FN:
        case DataType::FP8E8M0:
        case DataType::FP4E2M1: break;  // no kernel's tile has them
    }
    throw std::invalid_argument("no such DataType");
}

// How many elements from `offset` on, counted from the first of the tensor, are neighbours in memory and the tensor's; 0: not even one.
uint64_t neighbours(const ChipTensor &tensor, uint64_t offset) {
    uint32_t order[kMaxTensorDims];
    for (uint32_t dim = 0; dim < tensor.ndims; ++dim) {
        uint32_t at = dim;
        for (; at > 0 && tensor.strides[order[at - 1]] < tensor.strides[dim]; --at) order[at] = order[at - 1];
        order[at] = dim;
    }
    uint64_t left = 1;
    for (uint32_t at = 0; at < tensor.ndims; ++at) {
        const uint32_t dim = order[at], stride = tensor.strides[dim];
        if (tensor.shapes[dim] == 0) return 0;
        if (tensor.shapes[dim] == 1) continue;
        const uint64_t index = offset / stride;
        if (index >= tensor.shapes[dim]) return 0;
        offset -= index * stride;
        left = stride == 1 ? tensor.shapes[dim] - index : 1;
    }
    return offset == 0 ? left : 0;
}

bool holds(const ChipTensor &tensor, Dtype dtype, uint64_t address, uint64_t count) {
    const uint64_t size = bytes_of(dtype), start = tensor.buffer.addr + tensor.start_offset * size;
    if (dtype_of(tensor.dtype) != dtype || address < start || (address - start) % size != 0) return false;
    for (uint64_t offset = (address - start) / size; count > 0;) {
        const uint64_t found = neighbours(tensor, offset);
        if (found == 0) return false;
        const uint64_t step = found < count ? found : count;
        offset += step;
        count -= step;
    }
    return true;
}

void check_run(const Step &step, uint64_t address, uint64_t count, bool write) {
    const HostTask &task = machine().task();
    const Dtype dtype = step.operands.global->dtype;
    const std::string what = std::string(write ? "stores " : "loads ") + std::to_string(count) + " elements of " + name_of(dtype);
    std::string near = "that lie in no argument of the task";
    for (int i = 0; i < task.n_tensors; ++i) {
        const ChipTensor &tensor = *task.tensors[i];
        if (holds(tensor, dtype, address, count)) {
            if (!write || task.writable[i]) return;
            near = "of argument " + std::to_string(i) + ", which the task only reads";
        } else if (address >= tensor.buffer.addr && address < tensor.buffer.addr + tensor.buffer.size) {
            near = dtype_of(tensor.dtype) != dtype
                ? "of argument " + std::to_string(i) + ", which is " + name_of(dtype_of(tensor.dtype))
                : "from byte " + std::to_string(address - tensor.buffer.addr) + " of the buffer of argument " + std::to_string(i) +
                      " on, which are not all among the elements that the task was given";
        }
    }
    fail(step.site, what + " " + near);
}

// Calls back for each run of neighbours, in the order of the tile: the address, how many, and the row and column that it starts at.
template <typename Run>
void for_runs(const GlobalState &global, Run &&run) {
    const uint64_t size = bytes_of(global.dtype);
    const bool by_rows = global.layout == Layout::ND;
    const int64_t lines = global.shape[by_rows ? 3 : 4], length = global.shape[by_rows ? 4 : 3], pitch = global.stride[by_rows ? 3 : 4];
    int64_t row = 0;
    for (int64_t i = 0; i < global.shape[0]; ++i) {
        for (int64_t j = 0; j < global.shape[1]; ++j) {
            for (int64_t k = 0; k < global.shape[2]; ++k) {
                const int64_t start = i * global.stride[0] + j * global.stride[1] + k * global.stride[2];
                for (int64_t line = 0; line < lines; ++line) {
                    const uint64_t address = global.address + size * static_cast<uint64_t>(start + line * pitch);
                    run(address, length, by_rows ? row + line : row, by_rows ? 0 : line);
                }
                row += global.shape[3];
            }
        }
    }
}

bool boxed(const TileState &tile, BLayout blocks, SLayout inner) { return tile.blocks == blocks && tile.inner == inner; }

void check_layout(const Step &step) {
    const TileState &tile = step.tile(0);
    const GlobalState &global = *step.operands.global;
    const bool by_rows = global.layout == Layout::ND;
    const char *layout = by_rows ? "ND" : "DN";
    step.check_tile(0);
    step.require(global.stride[by_rows ? 4 : 3] == 1, std::string("a ") + layout + " tensor has a stride of " +
                 std::to_string(global.stride[by_rows ? 4 : 3]) + " where its elements are neighbours, not 1");
    if (tile.type == TileType::Vec) {
        step.require(tile.inner == SLayout::NoneBox && (tile.blocks == BLayout::RowMajor) == by_rows,
                     std::string("a ") + layout + " tensor goes with a " + (by_rows ? "row" : "column") + "-major tile of UB");
    } else if (tile.type == TileType::Mat) {
        const bool fits = by_rows ? boxed(tile, BLayout::ColMajor, SLayout::RowMajor) : boxed(tile, BLayout::RowMajor, SLayout::ColMajor);
        step.require(fits && tile.fractal == 512, std::string("a ") + layout + " tensor goes with a tile of L1 that is " +
                     (by_rows ? "column-major blocks of row-major fractals" : "row-major blocks of column-major fractals"));
    } else {
        step.require(by_rows, "L0C is stored by rows");
    }
    const int64_t rows = global.shape[0] * global.shape[1] * global.shape[2] * global.shape[3], cols = global.shape[4];
    step.require(rows == tile.valid_rows && cols == tile.valid_cols,
                 "the tensor has " + std::to_string(rows) + " rows of " + std::to_string(cols) + ", the valid part of the tile " +
                     std::to_string(tile.valid_rows) + " of " + std::to_string(tile.valid_cols));
}

void load(const Step &step) {
    const TileState &tile = step.tile(0);
    const GlobalState &global = *step.operands.global;
    step.require(tile.type == TileType::Vec || tile.type == TileType::Mat, "the tile lies in neither UB nor L1");
    check_layout(step);
    step.require(tile.dtype == global.dtype, std::string("the tile is ") + name_of(tile.dtype) + ", the tensor " + name_of(global.dtype));
    step.check_dtype(tile.dtype);
    step.start(PIPE_MTE2);
    const int size = bytes_of(tile.dtype);
    Grid grid(tile.dtype, tile.valid_rows, tile.valid_cols);
    for_runs(global, [&](uint64_t address, int64_t length, int64_t row, int64_t col) {
        check_run(step, address, static_cast<uint64_t>(length), false);
        machine().touch_global(address, address + static_cast<uint64_t>(length * size), false);
        const bool by_rows = global.layout == Layout::ND;
        for (int64_t at = 0; at < length; ++at) {
            const size_t to = grid.at(static_cast<int>(by_rows ? row : row + at), static_cast<int>(by_rows ? col + at : col));
            std::memcpy(&grid.bits[to], reinterpret_cast<const uint8_t *>(address) + at * size, static_cast<size_t>(size));
        }
    });
    step.write(0, grid);
}

void store(const Step &step) {
    const TileState &tile = step.tile(0);
    const GlobalState &global = *step.operands.global;
    const bool of_cube = tile.type == TileType::Acc;
    step.require(of_cube || tile.type == TileType::Vec, "the tile lies in neither UB nor L0C");
    check_layout(step);
    const bool narrows = of_cube && tile.dtype == Dtype::f32 && (global.dtype == Dtype::f16 || global.dtype == Dtype::bf16);
    step.require(tile.dtype == global.dtype || narrows,
                 std::string("the tile is ") + name_of(tile.dtype) + ", the tensor " + name_of(global.dtype));
    step.check_dtype(tile.dtype);
    step.start(of_cube ? PIPE_FIX : PIPE_MTE3);
    const Grid grid = step.read_known(0, "stores");
    const int size = bytes_of(global.dtype);
    for_runs(global, [&](uint64_t address, int64_t length, int64_t row, int64_t col) {
        check_run(step, address, static_cast<uint64_t>(length), true);
        machine().touch_global(address, address + static_cast<uint64_t>(length * size), true);
        const bool by_rows = global.layout == Layout::ND;
        for (int64_t at = 0; at < length; ++at) {
            const size_t from = grid.at(static_cast<int>(by_rows ? row : row + at), static_cast<int>(by_rows ? col + at : col));
            const uint64_t bits = narrows ? real_bits(global.dtype, real_of(tile.dtype, grid.bits[from])) : grid.bits[from];
            std::memcpy(reinterpret_cast<uint8_t *>(address) + at * size, &bits, static_cast<size_t>(size));
        }
    });
}

}  // namespace

std::vector<Entry> transfer_entries() { return {{"TLOAD", load}, {"TSTORE", store}}; }

}  // namespace pto::emu
