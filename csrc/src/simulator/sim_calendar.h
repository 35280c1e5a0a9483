/* sim_calendar.h: the order of an executor's tasks where a calendar gives it: each task waits for its place in the order.

   The first feed has to have all tasks: before it, nobody can say which task is the first of an executor. The queues of the pools own the
   order. */
#ifndef PTO_SIM_CALENDAR_H
#define PTO_SIM_CALENDAR_H
#include "sim_pools.h"

#pragma GCC visibility push(hidden)

/* Of columns that the pools have accepted. PTO_E_ARGUMENT, and failed_task: two tasks of a worker have one position, or a task has no
   start although others have. */
int32_t pto_sim_calendar_keep(pto_sim_pools *pools, const pto_columns *columns);

#pragma GCC visibility pop

#endif
