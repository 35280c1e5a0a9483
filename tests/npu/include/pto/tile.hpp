// Tiles, and the aliases of the cube core's, whose layouts differ by family.
#pragma once

#include "types.hpp"

namespace pto {
inline namespace PTO_EMU_FAMILY {

template <TileType Type, typename T, int R, int C, BLayout Blocks = BLayout::RowMajor, int VR = R, int VC = C,
          SLayout Inner = SLayout::NoneBox, int Fractal = 512, PadValue Pad = PadValue::Null>
class Tile : public emu::TileState {
    static_assert(R > 0 && C > 0, "a tile has rows and columns");
    static_assert((VR == -1 || (VR >= 1 && VR <= R)) && (VC == -1 || (VC >= 1 && VC <= C)), "the valid part lies in the storage");

  public:
    using DType = T;
    static constexpr TileType Loc = Type;
    static constexpr int Rows = R, Cols = C, ValidRow = VR, ValidCol = VC;
    static constexpr BLayout BFractal = Blocks;
    static constexpr SLayout SFractal = Inner;
    static constexpr bool isRowMajor = Blocks == BLayout::RowMajor;

    // A tile with dynamic extents is given them: both, or the only one.
    Tile() : Tile(Raw{}, VR, VC) { static_assert(VR != -1 && VC != -1, "a dynamic valid extent is given to the constructor"); }
    Tile(int64_t rows, int64_t cols) : Tile(Raw{}, rows, cols) {
        static_assert(VR == -1 && VC == -1, "both extents are given where both are dynamic");
    }
    explicit Tile(int64_t extent) : Tile(Raw{}, VR == -1 ? extent : VR, VC == -1 ? extent : VC) {
        static_assert((VR == -1) != (VC == -1), "one extent is given where one is dynamic");
    }

    int GetValidRow() const { return valid_rows; }
    int GetValidCol() const { return valid_cols; }

    // By the scalar unit; `index` counts elements of the storage, in the order in which they lie.
    T GetValue(int64_t index, PTO_EMU_AT) const { return value_of(emu::peek(PTO_EMU_SITE("GetValue"), *this, index)); }
    void SetValue(int64_t index, T value, PTO_EMU_AT) {
        uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof value);
        emu::poke(PTO_EMU_SITE("SetValue"), *this, index, bits);
    }

    class Cells {
      public:
        explicit Cells(Tile *tile) : tile_(tile) {}
        class Cell {
          public:
            Cell(Tile *tile, int64_t index, const char *file, int line) : tile_(tile), index_(index), file_(file), line_(line) {}
            operator T() const { return tile_->GetValue(index_, file_, line_); }
            Cell &operator=(T value) {
                tile_->SetValue(index_, value, file_, line_);
                return *this;
            }

          private:
            Tile *tile_;
            int64_t index_;
            const char *file_;
            int line_;
        };
        Cell at(int64_t index, PTO_EMU_AT) { return Cell(tile_, index, file, line); }
        Cell operator[](int64_t index) { return Cell(tile_, index, "data()", 0); }
        Cell operator*() { return (*this)[0]; }

      private:
        Tile *tile_;
    };
    Cells data() { return Cells(this); }

  private:
    struct Raw {};
    Tile(Raw, int64_t rows, int64_t cols)
        : emu::TileState{Type, emu::DtypeOf<T>::value, Blocks, Inner, Pad, Fractal, R, C,
                         static_cast<int>(rows), static_cast<int>(cols), VR, VC, 0, false} {}
    static T value_of(uint64_t bits) {
        T value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
};

#if !PTO_HOST_FAMILY_A5
template <typename T, int R, int C, int VR = R, int VC = C>
using TileLeft = Tile<TileType::Left, T, R, C, BLayout::RowMajor, VR, VC, SLayout::RowMajor, 512>;
#else
template <typename T, int R, int C, int VR = R, int VC = C>
using TileLeft = Tile<TileType::Left, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, 512>;
#endif
template <typename T, int R, int C, int VR = R, int VC = C>
using TileRight = Tile<TileType::Right, T, R, C, BLayout::RowMajor, VR, VC, SLayout::ColMajor, 512>;
template <typename T, int R, int C, int VR = R, int VC = C>
using TileAcc = Tile<TileType::Acc, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, 1024>;

inline void TASSIGN(emu::TileState &tile, uint64_t address, PTO_EMU_AT) {
    tile.address = address;
    tile.assigned = true;
    emu::run(PTO_EMU_SITE("TASSIGN"), emu::Operands(tile));
}

}  // namespace PTO_EMU_FAMILY
}  // namespace pto
