// Sorting, gathering, and tiles made from indices. Sorted rows hold pairs: a value, then its index as u32.
#pragma once

#include "elementwise.hpp"

namespace pto {
inline namespace PTO_EMU_FAMILY {

PTO_EMU_TILES3(TSORT32)
PTO_EMU_TILES4(TSORT32)

inline void TMRGSORT(TileState &dst, TileState &src, uint32_t block_words, PTO_EMU_AT) {
    emu::Operands operands(dst, src);
    operands.word = block_words;
    emu::run(PTO_EMU_SITE("TMRGSORT"), operands);
}

PTO_EMU_TILES3(TGATHER)
PTO_EMU_TILES4(TGATHER)
PTO_EMU_TILES3(TGATHERB)
PTO_EMU_TILES3(TSCATTER)

template <MaskPattern Pattern>
inline void TGATHER(TileState &dst, TileState &src, PTO_EMU_AT) {
    emu::Operands operands(dst, src);
    operands.word = static_cast<int>(Pattern);
    emu::run(PTO_EMU_SITE("TGATHER"), operands);
}
template <typename Dst, typename Src, MaskPattern Pattern>
inline void TGATHER(Dst &dst, Src &src, PTO_EMU_AT) {
    TGATHER<Pattern>(dst, src, file, line);
}

inline void TCI(TileState &dst, Number start, PTO_EMU_AT) {
    emu::Operands operands(dst);
    operands.number = start;
    emu::run(PTO_EMU_SITE("TCI"), operands);
}
inline void TCI(TileState &dst, Number start, TileState &tmp, PTO_EMU_AT) {
    emu::Operands operands(dst, tmp);
    operands.number = start;
    emu::run(PTO_EMU_SITE("TCI"), operands);
}
template <typename Dst, typename T, int Descending>
inline void TCI(Dst &dst, T start, PTO_EMU_AT) {
    emu::Operands operands(dst);
    operands.number = start;
    operands.word = Descending;
    emu::run(PTO_EMU_SITE("TCI"), operands);
}

// Ones on and below the diagonal, zeros elsewhere; Upper: on and above it.
inline void TTRI(TileState &dst, int diagonal, PTO_EMU_AT) {
    emu::Operands operands(dst);
    operands.number = diagonal;
    emu::run(PTO_EMU_SITE("TTRI"), operands);
}
template <typename Dst, int Upper>
inline void TTRI(Dst &dst, int diagonal, PTO_EMU_AT) {
    emu::Operands operands(dst);
    operands.number = diagonal;
    operands.word = Upper;
    emu::run(PTO_EMU_SITE("TTRI"), operands);
}

}  // namespace PTO_EMU_FAMILY
}  // namespace pto
