// Whether a running instruction gets what the instruction table demands; what it says is isa_rules.h.
#pragma once

#include "../step.h"

namespace pto::emu {

void check_rules(const Step &step);                              // before it runs
void check_values(const Step &step, int tile, const Grid &grid);   // of a tile that it has read
void check_number(const Step &step);                             // of its number operand

}  // namespace pto::emu
