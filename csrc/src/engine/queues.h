/* queues.h: ready nodes by home and by priority. */
#ifndef PTO_QUEUES_H
#define PTO_QUEUES_H
#include "state.h"

#pragma GCC visibility push(hidden)

bool pto_queues_reserve(pto_pool *pool);
void pto_queues_start(pto_pool *pool);                     /* deal out pool->start; workers have no other ready nodes */
bool pto_queues_work(pto_worker *worker);                  /* run what can be found; false if nothing was */

#pragma GCC visibility pop

#endif
