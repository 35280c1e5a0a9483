/* sanitize_tasks.h: run one task watched. */
#ifndef PTO_SANITIZE_TASKS_H
#define PTO_SANITIZE_TASKS_H
#include "state.h"

#pragma GCC visibility push(hidden)

int32_t pto_sanitize_task(pto_worker *worker, uint32_t at);                /* run it; what its entry returned, or 1 after a misuse */

#pragma GCC visibility pop

#endif
