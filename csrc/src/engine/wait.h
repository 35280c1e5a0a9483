/* wait.h: how workers wait for work and wake each other, and the monotonic clock in nanoseconds. */
#ifndef PTO_WAIT_H
#define PTO_WAIT_H
#include "state.h"

#pragma GCC visibility push(hidden)

int64_t pto_now_ns(void);
void pto_pause(int32_t n);                                 /* a few cycles, n times */
void pto_nap(void);                                        /* 20 microseconds off the CPU, or a little more */
void pto_worker_sleep(pto_worker *worker);                 /* until woken, unless there is work or an end to see */
void pto_pool_wake(pto_pool *pool, int64_t n);             /* up to n sleeping workers of this run */
void pto_pool_wake_for(pto_pool *pool, int32_t worker, int64_t n);     /* the same, this one before others */
void pto_pool_wake_all(pto_pool *pool);                    /* those of no run too */
void pto_worker_settle(pto_worker *worker);                /* tell the run what it has completed; whoever says the last ends it */

#pragma GCC visibility pop

#endif
