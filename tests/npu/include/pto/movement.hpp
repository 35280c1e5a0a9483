// Movement between memories, and of elements within one.
#pragma once

#include "elementwise.hpp"

namespace pto {
inline namespace PTO_EMU_FAMILY {

using emu::GlobalState;

inline void TLOAD(TileState &dst, GlobalState &src, PTO_EMU_AT) {
    emu::Operands operands(dst);
    operands.global = &src;
    emu::run(PTO_EMU_SITE("TLOAD"), operands);
}
inline void TSTORE(GlobalState &dst, TileState &src, PTO_EMU_AT) {
    emu::Operands operands(src);
    operands.global = &dst;
    emu::run(PTO_EMU_SITE("TSTORE"), operands);
}

PTO_EMU_TILES2(TMOV)
PTO_EMU_TILES3(TMOV)
PTO_EMU_TILES3(TTRANS)
PTO_EMU_TILES2(TRESHAPE)
PTO_EMU_TILES2(TFILLPAD)
PTO_EMU_TILES2(TFILLPAD_INPLACE)
PTO_EMU_TILES2(TFILLPAD_EXPAND)
PTO_EMU_TILES3(TCONCAT)
PTO_EMU_TILES4(TINTERLEAVE)
PTO_EMU_TILES4(TDEINTERLEAVE)
PTO_EMU_TILES3(TDEINTERLEAVE)
PTO_EMU_TILES2(TPAIRREDUCESUM)
PTO_EMU_TILES1(TPRINT)
PTO_EMU_TILES2(TPRINT)

#define PTO_EMU_AT_CORNER(NAME)                                                      \
    inline void NAME(TileState &dst, TileState &src, int64_t row, int64_t col, PTO_EMU_AT) { \
        emu::Operands operands(dst, src);                                            \
        operands.word = row;                                                         \
        operands.word2 = col;                                                        \
        emu::run(PTO_EMU_SITE(#NAME), operands);                                     \
    }

PTO_EMU_AT_CORNER(TEXTRACT)
PTO_EMU_AT_CORNER(TINSERT)
PTO_EMU_AT_CORNER(TSUBVIEW)

}  // namespace PTO_EMU_FAMILY
}  // namespace pto
