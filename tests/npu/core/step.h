// One instruction at work: its operands checked, read, and written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine.h"

namespace pto::emu {

// The valid part of a tile, row by row: the bits of each element, and why it means nothing, if it does.
struct Grid {
    Dtype dtype;
    int rows, cols;
    std::vector<uint64_t> bits;
    std::vector<uint8_t> doubts;
    std::vector<uint8_t> unknown;   // of a byte in doubt as some_bits: which bits

    Grid(Dtype dtype, int rows, int cols)
        : dtype(dtype), rows(rows), cols(cols), bits(static_cast<size_t>(rows) * cols), doubts(bits.size()),
          unknown(bytes_of(dtype) == 1 ? bits.size() : 0) {}
    size_t size() const { return bits.size(); }
    size_t at(int row, int col) const { return static_cast<size_t>(row) * cols + col; }
};

bool is_float(Dtype dtype);
float real_of(Dtype dtype, uint64_t bits);       // of a float dtype
int64_t whole_of(Dtype dtype, uint64_t bits);    // of an integer dtype
uint64_t real_bits(Dtype dtype, float value);    // rounded to nearest
uint64_t whole_bits(Dtype dtype, int64_t value);  // its low bits
uint64_t number_bits(Dtype dtype, const Number &number);

// Where element (row, col) of the storage lies, counted in elements.
uint64_t place_in(const TileState &tile, int row, int col);
uint64_t storage_bytes(const TileState &tile);

class Step {
  public:
    Step(const Site &site, const Operands &operands) : site(site), operands(operands) {}

    const Site &site;
    const Operands &operands;

    TileState &tile(int i) const { return *operands.tile[i]; }
    int n_tiles() const { return operands.n_tiles; }
    void start(pipe_t pipe) const { machine().start(site, pipe); }
    void require(bool holds, const std::string &what) const {
        if (!holds) fail(site, what);
    }

    // ---- checks: what does not hold is reported with the operand's place, counted from 1 ----
    void check_tile(int i) const;                    // address, storage, valid part
    void check_vector(int i) const;                  // in UB, row-major
    void check_column(int i) const;                  // in UB, [R, 1] column-major
    void check_type(int i, TileType type) const;
    void check_same_valid(int i, int j) const;
    void check_valid(int i, int rows, int cols) const;
    void check_same_dtype(int i, int j) const;
    void check_dtype(Dtype dtype) const;             // legal on the family
    void check_apart(bool in_place) const;           // no tile lies over another but as said

    // ---- accesses, of the valid part ----
    Grid read(int i) const;
    Grid read_known(int i, const char *use) const;   // refused where an element means nothing
    Grid read_storage(int i) const;                  // all of it, as rows x cols
    Grid read_at(int i, int row, int col, int rows, int cols) const;
    void write(int i, const Grid &grid) const { write_at(i, 0, 0, grid); }
    void write_at(int i, int row, int col, const Grid &grid) const;
    void scratch(int i) const;                       // what it holds afterwards means nothing

  private:
    void touch(const TileState &tile, int row, int col, int rows, int cols, bool write) const;
    std::string name(int i) const { return "operand " + std::to_string(i + 1); }
};

[[noreturn]] void fail_doubt(const Site &site, uint8_t doubt, const std::string &use);

using Handler = void (*)(const Step &);
struct Entry {
    const char *op;
    Handler run;
    bool in_place = false;   // a source may be the destination; else, and where they overlap in part, it is refused
};
std::vector<Entry> elementwise_entries();
std::vector<Entry> scalar_entries();
std::vector<Entry> compare_entries();
std::vector<Entry> reduce_entries();
std::vector<Entry> expand_entries();
std::vector<Entry> transfer_entries();
std::vector<Entry> movement_entries();
std::vector<Entry> order_entries();
std::vector<Entry> cube_entries();

}  // namespace pto::emu
