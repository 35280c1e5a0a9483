#pragma once

#include "pto/types.hpp"

namespace pto::emu {

// The dtypes of an instruction on a family, separated by spaces; null: the instruction has no dtype.
const char *dtypes_of(const char *op, Family family);
bool takes(const char *dtypes, const char *dtype);

}  // namespace pto::emu
