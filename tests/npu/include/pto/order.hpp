// Sorting, gathering, and tiles made from indices. Sorted rows hold pairs: a value, then its index as u32.
#pragma once

#include <type_traits>

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

// The destination's type, its dtype, and whether it counts down; the start is exactly of that dtype.
template <typename Dst, typename T, int Descending, typename Start>
inline void TCI(Dst &dst, Start start, PTO_EMU_AT) {
    static_assert(std::is_same_v<T, typename Dst::DType> && std::is_same_v<T, Start>, "the start is of the destination's dtype");
    emu::Operands operands(dst);
    operands.number = start;
    operands.word = Descending;
    emu::run(PTO_EMU_SITE("TCI"), operands);
}
template <typename Dst, typename T, int Descending, typename Start>
inline void TCI(Dst &dst, Start start, TileState &tmp, PTO_EMU_AT) {
    static_assert(std::is_same_v<T, typename Dst::DType> && std::is_same_v<T, Start>, "the start is of the destination's dtype");
    emu::Operands operands(dst, tmp);
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
