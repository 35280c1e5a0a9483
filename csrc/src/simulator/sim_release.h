/* sim_release.h: when a submitted task is released, that is may run once it is ready, and when executors start.

   Timing IMMEDIATE and INTERLEAVED release a task as it is submitted; BATCHED once its stream has submitted a batch or cannot go on; RATE
   one task after another by (time of submission, node), release_num / release_den cycles apart. Executors start once start_after tasks
   have been submitted, or no stream can go on.

   Ownership: pto_sim owns pto_sim_release, which owns its arrays; the other parts are pto_sim's. Units: times in cycles. */
#ifndef PTO_SIM_RELEASE_H
#define PTO_SIM_RELEASE_H
#include "sim_front.h"
#include "sim_pools.h"

#pragma GCC visibility push(hidden)

/* Tasks of a stream that have been submitted and not released: from `first` on by follower. */
typedef struct pto_sim_batch {
    int64_t first;             /* while n > 0 */
    int64_t n;
    bool is_listed;            /* in release->to_check */
} pto_sim_batch;

typedef struct pto_sim_release {
    const pto_sim_options *options;
    pto_sim_clock *clock;
    pto_sim_trace *trace;
    pto_sim_nodes *nodes;
    const pto_sim_front *front;
    pto_sim_pools *pools;
    bool delays;               /* timing does not release a task as it is submitted */
    int64_t n_submitted;
    pto_sim_batch *batches;    /* [n_batches] by stream */
    int64_t n_batches, batches_capacity;
    int32_t *to_check;         /* streams with tasks in their batch, and perhaps others */
    int64_t n_to_check, to_check_capacity;
    int64_t n_backlog;         /* with a rate: tasks that wait for their release, by (time of submission, node) */
    int64_t backlog_first, backlog_last;   /* nearly all come in order, and form a list by `next`; -1: it is empty */
    pto_sim_heap backlog_late; /* those that came at the time of the last of the list and stand before it in the record */
    int64_t due_whole, due_part;           /* the next release is due at whole + part / release_den */
    int64_t due;               /* rounded up */
} pto_sim_release;

void pto_sim_release_init(pto_sim_release *release, const pto_sim_options *options, pto_sim_front *front, pto_sim_pools *pools);
bool pto_sim_release_delay(pto_sim_release *release, int32_t stream, int64_t node);    /* a submitted task: by timing. False: no memory */
/* All that can be submitted now has been: release what is due, start. False: no memory. */
bool pto_sim_release_settle(pto_sim_release *release);
void pto_sim_release_close(pto_sim_release *release);

static inline void pto_sim_release_count(pto_sim_release *r)       /* one task more has been submitted: it may be the last to wait for */
{
    if (++r->n_submitted == r->options->start_after && !r->clock->is_started)
        pto_sim_start(r->clock);
}

static inline int64_t pto_sim_release_next(const pto_sim_release *release)     /* when the next release is due, -1: none is */
{
    return release->n_backlog > 0 ? release->due : -1;
}

#pragma GCC visibility pop

#endif
