/* pool.h: who holds a pool, and when its helpers may enter the run. */
#ifndef PTO_POOL_H
#define PTO_POOL_H
#include "state.h"

#pragma GCC visibility push(hidden)

/* Waits for other runs, and clears a stale cancel of the pool. NULL: the run has a cancel of the pool's own. False: cancelled while it
   waited. */
bool pto_pool_hold(pto_pool *pool, int32_t *cancel);
void pto_pool_release(pto_pool *pool);
bool pto_pool_cancelled(pto_pool *pool);
void pto_run_open(pto_pool *pool);
void pto_run_close(pto_pool *pool);                        /* no helper is inside afterwards */

#pragma GCC visibility pop

#endif
