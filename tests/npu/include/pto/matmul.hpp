// Products of the cube core: left in L0A, right in L0B, the sum in L0C.
#pragma once

#include "elementwise.hpp"

namespace pto {
inline namespace PTO_EMU_FAMILY {

PTO_EMU_TILES3(TMATMUL)
PTO_EMU_TILES4(TMATMUL_ACC)
PTO_EMU_TILES4(TMATMUL_BIAS)

}  // namespace PTO_EMU_FAMILY
}  // namespace pto
