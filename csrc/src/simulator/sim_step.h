/* sim_step.h: the state of a simulation, and what happens to a node from part to part.

   Its stream submits a node; release lets a task go; once the nodes before it have completed, the task is ready and stands in the queue of
   its executors, which take the one with the lowest (time from which it may run, node); an executor runs it; its completion frees room in the
   window of its stream and arrives at its successors. At one time completions come first, then submissions, then releases, then dispatch, and
   this repeats while tasks of no cost complete. Joins and marks take no room and no executor.

   Ownership: whoever made the pto_sim owns it, and it owns its parts. Units: cycles. */
#ifndef PTO_SIM_STEP_H
#define PTO_SIM_STEP_H
#include "sim_release.h"
#include "sim_service.h"

#pragma GCC visibility push(hidden)

struct pto_sim {
    pto_sim_options options;
    pto_sim_clock clock;
    pto_sim_nodes nodes;
    pto_sim_trace trace;
    pto_sim_front front;
    pto_sim_pools pools;
    pto_sim_release release;
    pto_sim_executors executors;
    pto_sim_service service;
    bool is_plain;             /* submitting has nothing to do but to count: every task is released at once, and nothing traced */
    bool is_finished;
    int64_t n_tasks;           /* fed */
    int64_t work;
    int64_t last_completion;   /* of a task */
    int64_t to_complete;       /* joins and marks to complete now: a list of nodes by `next`, -1: none */
};

/* Those that return bool return false after an error. */
void pto_sim_complete(pto_sim *s, int64_t node);           /* and all joins and marks that this completes */
bool pto_sim_submit(pto_sim *s, pto_sim_stream *f);        /* what the stream can */
bool pto_sim_submit_all(pto_sim *s);                       /* of the streams that may go on */
bool pto_sim_submit_by_rules(pto_sim *s, pto_sim_stream *f, int64_t node);
bool pto_sim_send_old_edges(pto_sim *s, int64_t node, const int64_t *src, int64_t n_src);      /* of sources that completed before now */
bool pto_sim_advance(pto_sim *s);      /* dispatch, then to the next time at which anything happens; false too when nothing does any more */

static inline bool pto_sim_make_ready(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->nodes, node);
    n->state = PTO_SIM_READY;
    if (s->trace.is_kept)
        s->trace.ready[n->task] = s->clock.now;
    return !(n->flags & PTO_SIM_RELEASED) || pto_sim_pools_offer(&s->pools, node);
}

static inline bool pto_sim_task_submitted(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->nodes, node);
    n->state = PTO_SIM_WAITING;
    if (n->n_pending == 0)
        return pto_sim_make_ready(s, node);
    pto_sim_wait(&s->pools, &s->pools.queues[n->queue]);
    return true;
}

static inline bool pto_sim_submit_task(pto_sim *s, pto_sim_stream *f, int64_t node)        /* which is next, and need not wait */
{
    if (!s->is_plain)
        return pto_sim_submit_by_rules(s, f, node);
    pto_sim_node *n = pto_sim_at(&s->nodes, node);
    f->next = n->follower;
    n->flags = PTO_SIM_RELEASED;
    if (++f->occupied[PTO_WINDOW_TASKS] > s->front.use[PTO_WINDOW_TASKS].high_water)
        s->front.use[PTO_WINDOW_TASKS].high_water = f->occupied[PTO_WINDOW_TASKS];
    return pto_sim_task_submitted(s, node);
}

#pragma GCC visibility pop

#endif
