/* tasks.h: the sink function that takes a task. */
#ifndef PTO_TASKS_H
#define PTO_TASKS_H
#include "state.h"

#pragma GCC visibility push(hidden)

int64_t pto_sink_task(pto_sink *sink, const pto_task *task);           /* the node; -1 after an error */

#pragma GCC visibility pop

#endif
