/* sim_executors.h: what runs tasks in the simulator: pools of executors and their queues (sim_pools.c), the tasks of a calendar
   (sim_calendar.c), AICPUs that dispatch and retire (sim_serve.c), the memory that running tasks share (sim_memory.c).

   Executors are numbered pool by pool, in each worker by worker, so those that a queue serves follow one another. Queues are numbered
   the same: pool * n_workers + worker, or by pool where workers share them. A pool that comes later moves nothing. */
#ifndef PTO_SIM_EXECUTORS_H
#define PTO_SIM_EXECUTORS_H
#include "sim_queue.h"

#pragma GCC visibility push(hidden)

#define PTO_SIM_MAX_POOLS 4096

/* Clocks run only while what they count goes on, so that an interval of any executor costs two readings. */
typedef struct pto_sim_pool {
    int64_t n_executors;       /* that a worker has */
    int64_t first_executor;
    int64_t n_standing;        /* ready tasks that nobody has taken */
    int64_t late;              /* the time with n_standing > 0, up to since */
    int64_t since;
    bool is_named;             /* by a task */
} pto_sim_pool;

typedef struct pto_sim_queue {
    pto_sim_ready ready;
    int64_t n_waiting;         /* submitted and not ready */
    int64_t waited;            /* the time with n_waiting > 0 and none standing in the pool, up to since */
    int64_t since;
    int64_t late;              /* of the pool, at since */
    int32_t pool;
    int32_t first, n;          /* executors that it serves */
    int32_t n_idle;            /* of these */
    bool listed;               /* in sim->to_dispatch */
} pto_sim_queue;

typedef struct pto_sim_executor {
    int64_t running;           /* node that it runs or that is being dispatched to it, -1: idle */
    int64_t since;             /* idle, or running */
    int64_t idle_waited, idle_late;    /* the clocks of its queue and pool when it became idle */
    int64_t busy, waiting, late, tasks_run;
    int64_t last_task;         /* that it ran, -1: none */
    int32_t queue;
    int32_t worker;
} pto_sim_executor;

#pragma GCC visibility pop

#endif
