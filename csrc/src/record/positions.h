/* positions.h: the positions of tasks in a calendar, for the engine and for the simulator. The caller owns the array. */
#ifndef PTO_POSITIONS_H
#define PTO_POSITIONS_H
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef struct pto_position {
    int64_t worker;
    int64_t position;
    int64_t id;                /* of the task or node */
} pto_position;

void pto_positions_sort(pto_position *positions, int64_t n);           /* by worker, position and id */

#pragma GCC visibility pop

#endif
