#include "step.h"

#include <cstring>
#include <string>
#include <unordered_map>

#include "check/dtypes.h"
#include "check/rules.h"

namespace pto::emu {

namespace {

const char *const kTypeNames[] = {"Vec", "Mat", "Left", "Right", "Acc", "Bias"};

std::string shape(int rows, int cols) { return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]"; }

struct Box {
    int rows, cols;
};

// The extent of a fractal: 16 rows of 32 bytes, or the same turned; 16 x 16 of what L0C holds.
Box box_of(const TileState &tile) {
    const int across = static_cast<int>(kBlockBytes) / bytes_of(tile.dtype);
    if (tile.inner == SLayout::NoneBox) return {1, 1};
    if (tile.fractal == 1024) return {16, 16};
    return tile.inner == SLayout::RowMajor ? Box{16, across} : Box{across, 16};
}

}  // namespace

bool is_float(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16; }

float real_of(Dtype dtype, uint64_t bits) {
    switch (dtype) {
        case Dtype::f32: return float_of(static_cast<uint32_t>(bits));
        case Dtype::f16: return half_value(static_cast<uint16_t>(bits));
        case Dtype::bf16: return bfloat_value(static_cast<uint16_t>(bits));
        default: return static_cast<float>(whole_of(dtype, bits));
    }
}

int64_t whole_of(Dtype dtype, uint64_t bits) {
    switch (dtype) {
        case Dtype::i32: return static_cast<int32_t>(bits);
        case Dtype::u32: return static_cast<uint32_t>(bits);
        case Dtype::i16: return static_cast<int16_t>(bits);
        case Dtype::u16: return static_cast<uint16_t>(bits);
        case Dtype::i8: return static_cast<int8_t>(bits);
        case Dtype::u8: return static_cast<uint8_t>(bits);
        default: return static_cast<int64_t>(bits);
    }
}

uint64_t real_bits(Dtype dtype, float value) {
    switch (dtype) {
        case Dtype::f32: return bits_of(value);
        case Dtype::f16: return half_bits(value);
        case Dtype::bf16: return bfloat_bits(value);
        default: return whole_bits(dtype, static_cast<int64_t>(value));
    }
}

uint64_t whole_bits(Dtype dtype, int64_t value) {
    const int bytes = bytes_of(dtype);
    const uint64_t bits = static_cast<uint64_t>(value);
    return bytes == 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1);
}

uint64_t number_bits(Dtype dtype, const Number &number) {
    if (is_float(dtype)) return real_bits(dtype, static_cast<float>(number.real));
    return whole_bits(dtype, number.is_real ? static_cast<int64_t>(number.real) : number.whole);
}

uint64_t place_in(const TileState &tile, int row, int col) {
    const Box box = box_of(tile);
    const int across = tile.cols / box.cols, down = tile.rows / box.rows;
    const int box_row = row / box.rows, box_col = col / box.cols, r = row % box.rows, c = col % box.cols;
    const int64_t outer = tile.blocks == BLayout::RowMajor ? static_cast<int64_t>(box_row) * across + box_col
                                                           : static_cast<int64_t>(box_col) * down + box_row;
    const int inner = tile.inner == SLayout::ColMajor ? c * box.rows + r : r * box.cols + c;
    return static_cast<uint64_t>(outer) * box.rows * box.cols + inner;
}

uint64_t storage_bytes(const TileState &tile) { return static_cast<uint64_t>(tile.rows) * tile.cols * bytes_of(tile.dtype); }

// ---- checks ----

void Step::check_tile(int i) const {
    const TileState &t = tile(i);
    const Space space = space_of(t.type);
    require(t.assigned, name(i) + " has no address: TASSIGN comes first");
    require(t.address % kBlockBytes == 0, name(i) + " lies at " + std::to_string(t.address) + ", no multiple of 32 bytes");
    const uint64_t end = t.address + storage_bytes(t), limit = capacity(space, site.family);
    require(end >= t.address && end <= limit, name(i) + " ends at byte " + std::to_string(end) + " of " + name_of(space) + ", which has " +
                                                  std::to_string(limit));
    if (t.inner == SLayout::NoneBox) {
        const bool rows = t.blocks == BLayout::RowMajor;
        const int bytes = (rows ? t.cols : t.rows) * bytes_of(t.dtype);
        require(bytes % static_cast<int>(kBlockBytes) == 0,
                name(i) + " has " + (rows ? "rows" : "columns") + " of " + std::to_string(bytes) + " bytes, no multiple of 32");
    } else {
        const Box box = box_of(t);
        require(t.rows % box.rows == 0 && t.cols % box.cols == 0,
                name(i) + " is " + shape(t.rows, t.cols) + ", not made of fractals of " + shape(box.rows, box.cols));
    }
    if (std::strcmp(site.op, "TASSIGN") == 0) return;   // a tile that nothing uses may be empty
    require(t.valid_rows >= 1 && t.valid_rows <= t.rows && t.valid_cols >= 1 && t.valid_cols <= t.cols,
            name(i) + " has a valid part of " + shape(t.valid_rows, t.valid_cols) + " in a storage of " + shape(t.rows, t.cols));
}

void Step::check_type(int i, TileType type) const {
    const int found = static_cast<int>(tile(i).type), wanted = static_cast<int>(type);
    require(found == wanted, name(i) + " is a " + kTypeNames[found] + " tile, not " + kTypeNames[wanted]);
    check_tile(i);
}

void Step::check_vector(int i) const {
    check_type(i, TileType::Vec);
    require(tile(i).blocks == BLayout::RowMajor && tile(i).inner == SLayout::NoneBox, name(i) + " is not row-major");
}

void Step::check_column(int i) const {
    check_type(i, TileType::Vec);
    require(tile(i).blocks == BLayout::ColMajor && tile(i).cols == 1, name(i) + " is not an [R, 1] column-major tile");
}

void Step::check_valid(int i, int rows, int cols) const {
    require(tile(i).valid_rows == rows && tile(i).valid_cols == cols,
            name(i) + " has a valid part of " + shape(tile(i).valid_rows, tile(i).valid_cols) + ", not " + shape(rows, cols));
}

void Step::check_same_valid(int i, int j) const { check_valid(j, tile(i).valid_rows, tile(i).valid_cols); }

void Step::check_same_dtype(int i, int j) const {
    require(tile(i).dtype == tile(j).dtype,
            name(j) + " is " + name_of(tile(j).dtype) + ", and " + name(i) + " is " + name_of(tile(i).dtype));
}

void Step::check_dtype(Dtype dtype) const {
    const char *legal = dtypes_of(site.op, site.family);
    if (legal == nullptr) return;
    const char *family = site.family == Family::a5 ? "a5" : "a2a3";
    require(takes(legal, name_of(dtype)),
            std::string(name_of(dtype)) + " on " + family + ": it takes " + (*legal ? legal : "nothing that is stated"));
}

void Step::check_apart(bool in_place) const {
    for (int i = 1; i < n_tiles(); ++i) {
        const TileState &a = tile(0), &b = tile(i);
        if (space_of(a.type) != space_of(b.type) || !a.assigned || !b.assigned) continue;
        const bool apart = a.address + storage_bytes(a) <= b.address || b.address + storage_bytes(b) <= a.address;
        const bool same = a.address == b.address && storage_bytes(a) == storage_bytes(b) && bytes_of(a.dtype) == bytes_of(b.dtype);
        require(apart || (same && in_place),
                name(i) + " overlaps the destination" + (same ? ", which this instruction cannot write in place" : ""));
    }
}

// ---- accesses ----

void Step::touch(const TileState &t, int row, int col, int rows, int cols, bool write) const {
    const Space space = space_of(t.type);
    const uint64_t size = bytes_of(t.dtype);
    if (t.inner != SLayout::NoneBox) return machine().touch(space, t.address, t.address + storage_bytes(t), write);
    const bool by_rows = t.blocks == BLayout::RowMajor;
    const int lines = by_rows ? rows : cols, length = by_rows ? cols : rows, pitch = by_rows ? t.cols : t.rows;
    const uint64_t start = t.address + size * place_in(t, row, col);
    if (length == pitch) return machine().touch(space, start, start + size * lines * pitch, write);
    for (int line = 0; line < lines; ++line) {
        const uint64_t first = start + size * line * pitch;
        machine().touch(space, first, first + size * length, write);
    }
}

Grid Step::read_at(int i, int row, int col, int rows, int cols) const {
    const TileState &t = tile(i);
    touch(t, row, col, rows, cols, false);
    Grid grid(t.dtype, rows, cols);
    const Memory &memory = machine().memory(space_of(t.type));
    const int size = bytes_of(t.dtype);
    const bool plain = t.inner == SLayout::NoneBox && t.blocks == BLayout::RowMajor;
    size_t to = 0;
    for (int r = row; r < row + rows; ++r) {
        for (int c = col; c < col + cols; ++c, ++to) {
            const uint64_t place = plain ? static_cast<uint64_t>(r) * t.cols + c : place_in(t, r, c);
            const uint64_t from = t.address + place * size;
            std::memcpy(&grid.bits[to], &memory.bytes[from], size);
            uint8_t doubt = 0;
            for (int byte = 0; byte < size; ++byte) doubt = doubt ? doubt : memory.doubts[from + byte];
            grid.doubts[to] = doubt;
            if (size == 1) grid.unknown[to] = memory.unknown[from];
        }
    }
    return grid;
}

Grid Step::read(int i) const { return read_at(i, 0, 0, tile(i).valid_rows, tile(i).valid_cols); }
Grid Step::read_storage(int i) const { return read_at(i, 0, 0, tile(i).rows, tile(i).cols); }

Grid Step::read_known(int i, const char *use) const {
    Grid grid = read(i);
    for (size_t at = 0; at < grid.size(); ++at) {
        if (grid.doubts[at]) {
            fail_doubt(site, grid.doubts[at], std::string(use) + " element " +
                       shape(static_cast<int>(at) / grid.cols, static_cast<int>(at) % grid.cols) + " of " + name(i));
        }
    }
    return grid;
}

void fail_doubt(const Site &site, uint8_t doubt, const std::string &use) {
    static const char *const reasons[] = {"", "that was never written", "that a conversion could not represent",
                                          "that an instruction used as scratch", "that compares what means nothing"};
    fail(site, use + ", " + reasons[doubt]);
}

void Step::write_at(int i, int row, int col, const Grid &grid) const {
    const TileState &t = tile(i);
    touch(t, row, col, grid.rows, grid.cols, true);
    Memory &memory = machine().memory(space_of(t.type));
    const int size = bytes_of(t.dtype);
    const bool plain = t.inner == SLayout::NoneBox && t.blocks == BLayout::RowMajor;
    size_t from = 0;
    for (int r = row; r < row + grid.rows; ++r) {
        for (int c = col; c < col + grid.cols; ++c, ++from) {
            const uint64_t place = plain ? static_cast<uint64_t>(r) * t.cols + c : place_in(t, r, c);
            const uint64_t to = t.address + place * size;
            std::memcpy(&memory.bytes[to], &grid.bits[from], size);
            std::memset(&memory.doubts[to], grid.doubts[from], size);
            if (size == 1) memory.unknown[to] = grid.unknown[from];
        }
    }
}

void Step::scratch(int i) const {
    check_tile(i);
    const TileState &t = tile(i);
    const Space space = space_of(t.type);
    for (int j = 0; j < i; ++j) {
        const TileState &other = tile(j);
        require(space_of(other.type) != space || other.address + storage_bytes(other) <= t.address ||
                    t.address + storage_bytes(t) <= other.address,
                name(i) + " is scratch, and overlaps " + name(j));
    }
    machine().touch(space, t.address, t.address + storage_bytes(t), true);
    Memory &memory = machine().memory(space);
    std::memset(&memory.bytes[t.address], 0xa5, storage_bytes(t));
    std::memset(&memory.doubts[t.address], static_cast<int>(Doubt::scratch), storage_bytes(t));
}

// ---- by name ----

void run(const Site &site, const Operands &operands) {
    static const std::unordered_map<std::string, Entry> handlers = [] {
        std::unordered_map<std::string, Entry> found;
        for (const auto &entries : {elementwise_entries(), scalar_entries(), compare_entries(), reduce_entries(), expand_entries(),
                                    transfer_entries(), movement_entries(), order_entries(), cube_entries()}) {
            for (const Entry &entry : entries) found.emplace(entry.op, entry);
        }
        return found;
    }();
    const Step step(site, operands);
    machine().note(site);
    const auto handler = handlers.find(site.op);
    step.require(handler != handlers.end(), "the emulated core does not have it");
    step.check_apart(handler->second.in_place);
    check_rules(step);
    handler->second.run(step);
    machine().finish();
}

// ---- the scalar unit ----

namespace {

uint64_t cell(const Step &step, int64_t index, bool write) {
    const TileState &t = step.tile(0);
    step.check_type(0, TileType::Vec);
    step.require(index >= 0 && index < static_cast<int64_t>(t.rows) * t.cols,
                 "element " + std::to_string(index) + " of a tile of " + shape(t.rows, t.cols));
    step.start(PIPE_S);
    const uint64_t size = bytes_of(t.dtype), first = t.address + static_cast<uint64_t>(index) * size;
    machine().touch(Space::UB, first, first + size, write);
    return first;
}

}  // namespace

uint64_t peek(const Site &site, const TileState &tile, int64_t index) {
    TileState copy = tile;
    machine().note(site);
    const uint64_t first = cell(Step(site, Operands(copy)), index, false);
    const Memory &memory = machine().memory(Space::UB);
    uint64_t bits = 0;
    for (int byte = 0; byte < bytes_of(tile.dtype); ++byte) {
        if (memory.doubts[first + byte]) fail_doubt(site, memory.doubts[first + byte], "reads element " + std::to_string(index));
    }
    std::memcpy(&bits, &memory.bytes[first], bytes_of(tile.dtype));
    machine().finish();
    return bits;
}

void poke(const Site &site, const TileState &tile, int64_t index, uint64_t bits) {
    TileState copy = tile;
    machine().note(site);
    const uint64_t first = cell(Step(site, Operands(copy)), index, true);
    Memory &memory = machine().memory(Space::UB);
    std::memcpy(&memory.bytes[first], &bits, bytes_of(tile.dtype));
    std::memset(&memory.doubts[first], 0, bytes_of(tile.dtype));
    machine().finish();
}

}  // namespace pto::emu
