/* sim.h: the state that the files of the simulator share: sim.c (feeding and results), sim_front.c (streams: submitting),
   sim_step.c (executors: running and completing).

   Each stream submits in its own order, as early as its window has a slot and no mark blocks it; submitting costs nothing. A slot
   frees when its task and all earlier ones of its stream have completed. A ready task waits for its own executor, which takes the
   one with the lowest (ready time, node). At one time completions come first, then submissions, then dispatch, and this repeats
   while tasks of no cost complete. Joins and marks take no slot and no executor.

   Time goes on only when all open streams are held (by a full window or a mark), because what has not been fed yet may still be
   submitted at this time. So how a record is cut into feeds cannot change the result. A stream is open from its first node on,
   except between a mark that rests and its next node. */
#ifndef PTO_SIM_H
#define PTO_SIM_H
#include "sim_queue.h"

#pragma GCC visibility push(hidden)

typedef struct pto_sim_link {
    int64_t node;
    int32_t next;              /* also the free list */
    bool is_order;             /* into a mark, for no other reason than structure */
} pto_sim_link;

typedef struct pto_sim_executor {
    pto_sim_ready ready;
    int64_t running;           /* node, -1: idle */
    int64_t n_waiting;         /* submitted and not ready */
    int64_t since;             /* waiting has been counted up to here */
    bool listed;               /* in sim->to_dispatch */
} pto_sim_executor;

typedef enum pto_sim_holder { PTO_SIM_FREE, PTO_SIM_BY_WINDOW, PTO_SIM_BY_MARK } pto_sim_holder;

/* One stream. Its nodes from `first` to `last` are a list by follower; from `next` on they have not been submitted. */
typedef struct pto_sim_front {
    int64_t first;             /* the oldest task not completed, or next; -1: none */
    int64_t next, last;        /* next is -1 when all have been submitted */
    int64_t n_held;            /* slots taken: tasks submitted and not retired */
    int64_t since;             /* when it was held */
    int64_t chain;             /* longest chain up to the last mark that blocked it */
    int64_t mark;              /* the mark that holds it */
    pto_sim_holder hold;
    bool is_open;
    bool listed;               /* in sim->to_submit */
} pto_sim_front;

struct pto_sim {
    pto_sim_options options;
    int32_t status;            /* the first error: a simulation that lost a task cannot go on */
    bool finished;
    int64_t now;
    int64_t last_completion;   /* of a task */
    int64_t n_tasks;           /* fed */
    int64_t n_executors;
    int64_t work, critical_path;
    int64_t window_stalls, window_stall_cycles, window_high_water;
    int64_t stalls[PTO_N_STALLS], stall_cycles[PTO_N_STALLS];

    pto_sim_ring ring;
    pto_sim_link *links;
    int64_t n_links, links_capacity;
    int32_t links_free;
    int64_t to_complete;       /* joins and marks to complete now: a list of nodes, -1: none */

    pto_sim_front *fronts;     /* [n_fronts] by stream */
    int64_t n_fronts, fronts_capacity;
    int64_t n_open, n_open_held;
    int32_t *to_submit;        /* [n_fronts] streams that may go on */
    int64_t n_to_submit, to_submit_capacity;

    pto_sim_executor *executors;
    pto_sim_heap running;      /* (end, executor) */
    pto_sim_heap delayed;      /* (end, mark) */
    int64_t *to_dispatch;      /* [n_executors] executors that may have become able to start */
    int64_t n_to_dispatch;
    int64_t *busy, *waiting, *tasks_run;

    int64_t *chain;            /* longest chain that ends in a node, in a ring by node id */
    int64_t chain_capacity, chain_limit, chain_first;

    int64_t *start, *end, *ready;      /* by task, with keep_trace */
    int64_t trace_capacity;
};

static inline int64_t pto_sim_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static inline bool pto_sim_fail(pto_sim *s)
{
    s->status = PTO_E_NOMEM;
    return false;
}

/* sim_step.c; those that return bool return false after an error */
bool pto_sim_task_submitted(pto_sim *s, int64_t node);
bool pto_sim_mark_submitted(pto_sim *s, int64_t node);
void pto_sim_complete(pto_sim *s, int64_t node);           /* and all joins and marks that this completes */
bool pto_sim_advance(pto_sim *s);      /* dispatch, then to the next completion; false too when nothing runs any more */

/* sim_front.c */
pto_sim_front *pto_sim_open(pto_sim *s, int32_t stream);   /* NULL: no memory */
void pto_sim_rest(pto_sim *s, pto_sim_front *f);
void pto_sim_hold(pto_sim *s, pto_sim_front *f, pto_sim_holder by);
void pto_sim_free_slots(pto_sim *s, pto_sim_front *f);     /* of all tasks that are done from the oldest on */
bool pto_sim_submit(pto_sim *s, pto_sim_front *f);         /* what can be */
bool pto_sim_submit_all(pto_sim *s);                       /* of the streams that may go on */
void pto_sim_pass_mark(pto_sim *s, pto_sim_front *f, int64_t node);    /* a mark has completed */

static inline pto_sim_front *pto_sim_front_of(pto_sim *s, int32_t stream)      /* opened; NULL: no memory */
{
    if (__builtin_expect(stream < s->n_fronts && s->fronts[stream].is_open, 1))
        return &s->fronts[stream];
    return pto_sim_open(s, stream);
}

static inline bool pto_sim_is_full(const pto_sim *s, const pto_sim_front *f)
{
    return s->options.window > 0 && f->n_held >= s->options.window;
}

/* Put a node behind the others of its stream. One that `first` has passed may have left the ring: only a list that is not
   empty is linked to. */
static inline void pto_sim_append(pto_sim *s, pto_sim_front *f, int64_t node)
{
    if (f->first < 0)
        f->first = node;
    else
        pto_sim_at(&s->ring, f->last)->follower = node;
    f->last = node;
    if (f->next < 0)
        f->next = node;
}

static inline bool pto_sim_submit_task(pto_sim *s, pto_sim_front *f, int64_t node)     /* which is next, and has a slot */
{
    f->next = pto_sim_at(&s->ring, node)->follower;
    if (++f->n_held > s->window_high_water)
        s->window_high_water = f->n_held;
    return pto_sim_task_submitted(s, node);
}

#pragma GCC visibility pop

#endif
