// Elementwise instructions: the vector core, row-major tiles with the same valid part.
#pragma once

#include "types.hpp"

namespace pto {
inline namespace PTO_EMU_FAMILY {

using emu::Number;
using emu::TileState;

#define PTO_EMU_TILES1(NAME) \
    inline void NAME(TileState &a, PTO_EMU_AT) { emu::run(PTO_EMU_SITE(#NAME), emu::Operands(a)); }
#define PTO_EMU_TILES2(NAME) \
    inline void NAME(TileState &a, TileState &b, PTO_EMU_AT) { emu::run(PTO_EMU_SITE(#NAME), emu::Operands(a, b)); }
#define PTO_EMU_TILES3(NAME) \
    inline void NAME(TileState &a, TileState &b, TileState &c, PTO_EMU_AT) { emu::run(PTO_EMU_SITE(#NAME), emu::Operands(a, b, c)); }
#define PTO_EMU_TILES4(NAME)                                                           \
    inline void NAME(TileState &a, TileState &b, TileState &c, TileState &d, PTO_EMU_AT) { \
        emu::run(PTO_EMU_SITE(#NAME), emu::Operands(a, b, c, d));                      \
    }
// dst, src, number; then scratch, or a second source, where there is one
#define PTO_EMU_SCALAR(NAME)                                                     \
    inline void NAME(TileState &dst, TileState &src, Number number, PTO_EMU_AT) { \
        emu::Operands operands(dst, src);                                        \
        operands.number = number;                                                \
        emu::run(PTO_EMU_SITE(#NAME), operands);                                 \
    }
#define PTO_EMU_SCALAR_TILE(NAME)                                                                  \
    inline void NAME(TileState &dst, TileState &src, Number number, TileState &third, PTO_EMU_AT) { \
        emu::Operands operands(dst, src, third);                                                   \
        operands.number = number;                                                                  \
        emu::run(PTO_EMU_SITE(#NAME), operands);                                                   \
    }

PTO_EMU_TILES2(TABS)
PTO_EMU_TILES2(TNEG)
PTO_EMU_TILES2(TNOT)
PTO_EMU_TILES2(TEXP)
PTO_EMU_TILES2(TLOG)
PTO_EMU_TILES2(TSQRT)
PTO_EMU_TILES2(TRSQRT)
PTO_EMU_TILES3(TRSQRT)
PTO_EMU_TILES2(TRECIP)
PTO_EMU_TILES2(TRELU)

PTO_EMU_TILES3(TADD)
PTO_EMU_TILES3(TSUB)
PTO_EMU_TILES3(TMUL)
PTO_EMU_TILES3(TDIV)
PTO_EMU_TILES3(TMAX)
PTO_EMU_TILES3(TMIN)
PTO_EMU_TILES3(TAND)
PTO_EMU_TILES3(TOR)
PTO_EMU_TILES4(TXOR)
PTO_EMU_TILES3(TSHL)
PTO_EMU_TILES3(TSHR)
PTO_EMU_TILES3(TFMOD)
PTO_EMU_TILES4(TREM)
PTO_EMU_TILES4(TPRELU)
PTO_EMU_TILES4(TPOW)
PTO_EMU_TILES3(TSUBRELU)
PTO_EMU_TILES3(TMULADDDST)
PTO_EMU_TILES3(TFUSEDMULADD)
PTO_EMU_TILES3(TFUSEDMULADDRELU)
PTO_EMU_TILES3(TPARTADD)
PTO_EMU_TILES3(TPARTMAX)
PTO_EMU_TILES3(TPARTMIN)
PTO_EMU_TILES3(TPARTMUL)

PTO_EMU_SCALAR(TADDS)
PTO_EMU_SCALAR(TSUBS)
PTO_EMU_SCALAR(TMULS)
PTO_EMU_SCALAR(TDIVS)
PTO_EMU_SCALAR(TMAXS)
PTO_EMU_SCALAR(TMINS)
PTO_EMU_SCALAR(TANDS)
PTO_EMU_SCALAR(TORS)
PTO_EMU_SCALAR_TILE(TXORS)
PTO_EMU_SCALAR(TSHLS)
PTO_EMU_SCALAR(TSHRS)
PTO_EMU_SCALAR(TFMODS)
PTO_EMU_SCALAR_TILE(TREMS)
PTO_EMU_SCALAR_TILE(TPOWS)
PTO_EMU_SCALAR(TLRELU)
PTO_EMU_SCALAR(TAXPY)
PTO_EMU_SCALAR_TILE(TADDSC)
PTO_EMU_SCALAR_TILE(TSUBSC)

// number / src
inline void TDIVS(TileState &dst, Number number, TileState &src, PTO_EMU_AT) {
    emu::Operands operands(dst, src);
    operands.number = number;
    operands.word = 1;
    emu::run(PTO_EMU_SITE("TDIVS"), operands);
}

inline void TEXPANDS(TileState &dst, Number number, PTO_EMU_AT) {
    emu::Operands operands(dst);
    operands.number = number;
    emu::run(PTO_EMU_SITE("TEXPANDS"), operands);
}

// Masks are packed: bit c % 8 of byte c / 8 of a row of u8.
inline void TCMP(TileState &mask, TileState &a, TileState &b, CmpMode mode, PTO_EMU_AT) {
    emu::Operands operands(mask, a, b);
    operands.word = static_cast<int>(mode);
    emu::run(PTO_EMU_SITE("TCMP"), operands);
}
inline void TCMPS(TileState &mask, TileState &a, Number number, CmpMode mode, PTO_EMU_AT) {
    emu::Operands operands(mask, a);
    operands.number = number;
    operands.word = static_cast<int>(mode);
    emu::run(PTO_EMU_SITE("TCMPS"), operands);
}
inline void TSEL(TileState &dst, TileState &mask, TileState &a, TileState &b, TileState &tmp, PTO_EMU_AT) {
    emu::run(PTO_EMU_SITE("TSEL"), emu::Operands(dst, mask, a, b, tmp));
}
inline void TSELS(TileState &dst, TileState &mask, TileState &src, TileState &tmp, Number number, PTO_EMU_AT) {
    emu::Operands operands(dst, mask, src, tmp);
    operands.number = number;
    emu::run(PTO_EMU_SITE("TSELS"), operands);
}

// word: the rounding; word2: 1 + the saturation, 0 where none is given
inline void TCVT(TileState &dst, TileState &src, RoundMode mode = RoundMode::CAST_RINT, PTO_EMU_AT) {
    emu::Operands operands(dst, src);
    operands.word = static_cast<int>(mode);
    emu::run(PTO_EMU_SITE("TCVT"), operands);
}
inline void TCVT(TileState &dst, TileState &src, RoundMode mode, SaturationMode saturation, PTO_EMU_AT) {
    emu::Operands operands(dst, src);
    operands.word = static_cast<int>(mode);
    operands.word2 = 1 + static_cast<int>(saturation);
    emu::run(PTO_EMU_SITE("TCVT"), operands);
}
inline void TCVT(TileState &dst, TileState &src, TileState &tmp, RoundMode mode, PTO_EMU_AT) {
    emu::Operands operands(dst, src, tmp);
    operands.word = static_cast<int>(mode);
    emu::run(PTO_EMU_SITE("TCVT"), operands);
}
inline void TCVT(TileState &dst, TileState &src, TileState &tmp, RoundMode mode, SaturationMode saturation, PTO_EMU_AT) {
    emu::Operands operands(dst, src, tmp);
    operands.word = static_cast<int>(mode);
    operands.word2 = 1 + static_cast<int>(saturation);
    emu::run(PTO_EMU_SITE("TCVT"), operands);
}

}  // namespace PTO_EMU_FAMILY
}  // namespace pto
