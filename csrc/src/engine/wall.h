/* wall.h: the wall-clock trace of a run. Whoever made the trace owns it and its rows; times in nanoseconds. */
#ifndef PTO_WALL_H
#define PTO_WALL_H
#include "wait.h"

#pragma GCC visibility push(hidden)

void pto_wall_start(pto_wall *wall);                       /* of a run: nothing is kept of the last one */
int32_t pto_wall_rows(pto_wall *wall, const pto_record *record, pto_wall_row **rows);      /* NULL: tasks have been dropped */

static inline void pto_wall_note(pto_wall_row *row, int64_t start_ns, int32_t thread)
{
    *row = (pto_wall_row){.start_ns = start_ns, .end_ns = pto_now_ns(), .thread = thread};
}

#pragma GCC visibility pop

#endif
