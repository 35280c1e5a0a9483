// Tile instructions on host memory, for tests: what an emitted kernel asks of a core is done, and checked.
//
// A kernel is compiled to a shared object with -DPTO_HOST_FAMILY_A5=0 (a2a3) or 1 (a5), and linked to the emulated core (tests/npu/core,
// built by tests/npu/emulator.py). Through it a host runs one block of one task so (host_task.h):
//     pto_emulator_begin(&task);  kernel_entry(args);  pto_emulator_end();
// Each of the three throws std::runtime_error that says "file:line: INSTRUCTION: what is wrong". Found are:
// - tiles: no address, not aligned to 32 bytes, beyond the end of their memory, rows of no whole 32 bytes, parts of fractals, no valid part
// - operands: of the wrong memory, layout, shape or dtype; dtypes that the family lacks
// - global memory: elements of no argument, of another dtype, stored to an argument that is only read
// - numbers that were never written, and reach global memory, a reduction, a product or the scalar unit
// - order: accesses of two pipes to the same 32 bytes on chip, or the same bytes of global memory, that no flag orders; of one
//   pipe but the scalar and the matrix unit's without a barrier between; flags waited for and not set, set twice, left over; stores not waited for at the end
#pragma once

#include "types.hpp"

#include "elementwise.hpp"
#include "flags.hpp"
#include "global.hpp"
#include "matmul.hpp"
#include "movement.hpp"
#include "order.hpp"
#include "reduce.hpp"
#include "tile.hpp"
