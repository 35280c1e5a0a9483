/* sim_executors.h: what executors do: take a task off a queue, run it, end it.

   Ownership: pto_sim owns the executors' part; rows of executors and queues belong to the pools. Units: times in cycles. */
#ifndef PTO_SIM_EXECUTORS_H
#define PTO_SIM_EXECUTORS_H
#include "sim_memory.h"
#include "sim_pools.h"

#pragma GCC visibility push(hidden)

typedef struct pto_sim_executors {
    const pto_sim_options *options;
    pto_sim_clock *clock;
    pto_sim_nodes *nodes;
    pto_sim_trace *trace;
    pto_sim_pools *pools;
    pto_sim_memory memory;
    int64_t memory_cycles;     /* by which tasks ended later than they would alone */
    int64_t *starts;           /* by task, of a calendar; NULL: none */
} pto_sim_executors;

/* Keeps the starts of the options, which the caller may free then. False: no memory. */
bool pto_sim_executors_init(pto_sim_executors *x, const pto_sim_options *options, pto_sim_pools *pools);
void pto_sim_executors_close(pto_sim_executors *x);
void pto_sim_engage(pto_sim_executors *x, int64_t executor, int64_t node);         /* it is idle, and gets a task off a queue */
bool pto_sim_begin(pto_sim_executors *x, int64_t executor);                        /* it runs the task. False: no memory */
bool pto_sim_begin_due(pto_sim_executors *x);              /* executors whose tasks waited for their start. False: no memory */
bool pto_sim_dispatch(pto_sim_executors *x);               /* where that takes no time: all that can start. False: no memory */
bool pto_sim_count_slowed(pto_sim_executors *x, int64_t executor);     /* how much longer its task took; false: too large a sum */

/* An executor becomes idle. */
static inline void pto_sim_read_clocks(const pto_sim_pools *p, const pto_sim_queue *q, pto_sim_executor *e)
{
    e->idle_late = pto_sim_late(p, &p->pools[q->pool]);
    e->idle_waited = pto_sim_waited(p, q, e->idle_late);
}

/* Enter in the trace that a copy has left a link of its route. False: no memory. */
bool pto_sim_trace_hop(pto_sim_executors *x, int64_t executor);

static inline int64_t pto_sim_end(pto_sim_executors *x, int64_t at)    /* its task has come to its end: returns the node */
{
    pto_sim_pools *p = x->pools;
    int64_t now = x->clock->now;
    pto_sim_executor *e = &p->executors[at];
    pto_sim_queue *q = &p->queues[e->queue];
    int64_t node = e->running;
    if (x->trace->is_kept)
        x->trace->end[pto_sim_at(x->nodes, node)->task] = now;
    e->busy += now - e->since;
    e->running = -1;
    e->since = now;
    if (q->n > 1 || p->has_service)    /* else pto_sim_dispatch does, if the executor still is idle then */
        pto_sim_read_clocks(p, q, e);
    pto_sim_set_idle(p, at, true);
    q->n_idle++;
    pto_sim_list_queue(p, e->queue);
    return node;
}

#pragma GCC visibility pop

#endif
