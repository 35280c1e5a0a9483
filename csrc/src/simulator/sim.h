/* sim.h: the state that the files of the simulator share: sim.c (feeding and results), sim_front.c (streams: submitting),
   sim_release.c (what becomes of submitted tasks: timing, start), sim_step.c (executors: running and completing) and its like in
   sim_executors.h.

   Each stream submits in its own order, as early as its window has room, no mark blocks it and it is not busy with the task before
   (submit_cycles). Room frees when a task and all earlier ones of its stream have completed. A submitted task is released by the
   rules of timing, is ready once all before it has completed, and may run when it is both. It waits for its own executor, which
   takes the one with the lowest (time from which it may run, node). Nothing is dispatched before the start. At one time completions
   come first, then submissions, then releases, then dispatch, and this repeats while tasks of no cost complete. Joins and marks
   take no room and no executor.

   Who decides what: sim_front.c and sim_release.c when a task is submitted (pto_sim_task_submitted) and when it is released
   (pto_sim_release; before or after it is ready); sim_step.c what becomes of tasks that may run. With keep_trace the former leave by
   task: submit, front_why and front_by (why its stream had not submitted it earlier: PTO_HELD_WINDOW, _MARK, _SUBMIT, or _NOT) and
   released; and start_time, before which nothing ran. The latter compares these times with those of edges and executors when it
   dispatches: the latest decides what is `held`, of equal ones the first of
   these: submission, edge, release, start, executor.

   Time goes on only when all open streams are held (by a full window or a mark), because what has not been fed yet may still be
   submitted at this time. So how a record is cut into feeds cannot change the result. A stream is open from its first node on,
   except between a mark that rests and its next node. */
#ifndef PTO_SIM_H
#define PTO_SIM_H
#include "sim_executors.h"

#pragma GCC visibility push(hidden)

typedef struct pto_sim_link {
    int64_t node;
    int32_t next;              /* also the free list */
    bool is_order;             /* into a mark, for no other reason than structure */
} pto_sim_link;

typedef enum pto_sim_holder { PTO_SIM_FREE, PTO_SIM_BY_WINDOW, PTO_SIM_BY_MARK, PTO_SIM_BY_SUBMIT } pto_sim_holder;

/* One stream. Its nodes from `first` to `last` are a list by follower; from `next` on they have not been submitted. */
typedef struct pto_sim_front {
    int64_t first;             /* the oldest task not completed, or next; -1: none */
    int64_t next, last;        /* next is -1 when all have been submitted */
    int64_t held;              /* of its window: what tasks submitted and not retired take */
    int64_t needs;             /* room that its next task needs, while the window holds it */
    int64_t since;             /* when it was held */
    int64_t chain;             /* longest chain up to the last mark that blocked it */
    int64_t mark;              /* the mark that holds it */
    int64_t batch;             /* the first task that was submitted and not released, while n_batch > 0 */
    int64_t n_batch;
    int64_t held_by;           /* what held it until it last went on, by `why` */
    pto_sim_holder hold;
    uint8_t why;               /* PTO_HELD_WINDOW, _MARK, _SUBMIT; _NOT: nothing yet */
    bool is_open;
    bool listed;               /* in sim->to_submit */
    bool batched;              /* in sim->batches */
} pto_sim_front;

struct pto_sim {
    pto_sim_options options;
    int32_t status;            /* the first error: a simulation that lost a task cannot go on */
    int64_t failed_task;       /* that the status is about; -1: none in particular */
    const volatile int32_t *cancel;    /* not 0 ends it */
    int32_t own_cancel;        /* while no run has brought one */
    bool finished;
    int64_t now;
    int64_t last_completion;   /* of a task */
    int64_t n_tasks;           /* fed */
    int64_t work, critical_path;
    int64_t window_stalls, window_stall_cycles, window_high_water;
    int64_t stalls[PTO_N_STALLS], stall_cycles[PTO_N_STALLS];

    pto_sim_ring ring;
    pto_sim_link *links;
    int64_t n_links, links_capacity;
    int32_t links_free;
    int64_t to_complete;       /* joins and marks to complete now: a list of nodes, -1: none */

    /* sim_front.c */
    pto_sim_front *fronts;     /* [n_fronts] by stream */
    int64_t n_fronts, fronts_capacity;
    int64_t n_open, n_open_held;
    int32_t *to_submit;        /* [n_fronts] streams that may go on */
    int64_t n_to_submit, to_submit_capacity;
    int64_t window_limit;      /* what a stream waits for room in; INT64_MAX: it never waits */
    int64_t n_overflows;       /* streams held by a window that is to end the simulation once time goes on */
    int64_t *weights;          /* what a node takes of the window, in a ring by node id; NULL: 1 */
    int64_t weights_capacity;
    pto_sim_heap submitting;   /* (when it goes on, stream) */

    /* sim_release.c */
    bool is_plain;             /* submitting has nothing to do but to count: every task is released at once, and nothing traced */
    bool is_started;           /* executors may run */
    int64_t start_time;        /* when is_started became true */
    int64_t n_submitted;       /* counted unless is_plain */
    int32_t *batches;          /* [n_fronts] streams with n_batch > 0, and perhaps others */
    int64_t n_batches, batches_capacity;
    int64_t n_backlog;         /* with a rate: tasks that wait for their release, by (submitted, node) */
    int64_t backlog_first, backlog_last;   /* nearly all come in order, and form a list by `next`; -1: it is empty */
    pto_sim_heap backlog_late; /* those that came at the time of the last one of the list and stand before it in the record */
    int64_t release_whole, release_part;   /* the next release is due at whole + part / release_den */
    int64_t release_at;        /* rounded up */

    /* sim_step.c */
    pto_sim_heap running;      /* (end, executor) */
    pto_sim_heap delayed;      /* (end, mark) */
    int64_t *to_dispatch;      /* [n_queues] queues whose executors may have become able to start */
    int64_t n_to_dispatch, to_dispatch_capacity;

    /* sim_pools.c */
    bool is_open;              /* there are pools: the first tasks have said which */
    bool is_ranked;            /* ready tasks have priorities, or take turns */
    pto_sim_pool *pools;
    int64_t n_pools, pools_capacity;
    pto_sim_queue *queues;
    int64_t n_queues, queues_capacity;
    pto_sim_executor *executors;
    int64_t n_executors, executors_capacity;
    bool seeks_idle;           /* someone asks which executors are idle: a queue has several, or other queues do */
    uint64_t *idle;            /* a bit an executor, if so */
    int64_t idle_capacity;
    int64_t *figures;          /* of the executors, for the result: five arrays */

    /* sim_calendar.c */
    int64_t *calendar;         /* nodes, queue by queue in the order of their positions; NULL: none */
    int64_t *starts;           /* by task; NULL: none */
    pto_sim_heap early;        /* (start, executor): executors that have a task and wait for its start */

    /* sim_serve.c */
    pto_sim_server *servers;   /* [n_workers]; NULL: dispatching and retiring take no time */
    pto_sim_heap serving;      /* (end, worker) */
    int32_t *to_serve;         /* [n_workers] workers that may have something to do */
    int64_t n_to_serve;

    /* sim_memory.c */
    pto_sim_memory memory;
    int64_t memory_cycles;

    int64_t *chain;            /* longest chain that ends in a node, in a ring by node id */
    int64_t chain_capacity, chain_limit, chain_first;

    /* by task, with keep_trace */
    int64_t *start, *end, *complete, *ready, *executor, *held_by;     /* sim_step.c */
    uint8_t *held;
    int64_t *submit, *released;        /* sim_release.c */
    int64_t *front_by;         /* as pto_sim_result.held_by, by front_why */
    uint8_t *front_why;
    int64_t trace_capacity;
};

/* Of times. What comes out too large is INT64_MAX, which no time reaches: the simulation ends there. */
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

static inline bool pto_sim_fail_at(pto_sim *s, int32_t status, int64_t task)
{
    s->status = status;
    s->failed_task = task;
    return false;
}

/* Add to a sum of cycles that is reported. `task`: whose they are, -1 for none in particular. */
static inline bool pto_sim_count(pto_sim *s, int64_t *sum, int64_t cycles, int64_t task)
{
    return !__builtin_add_overflow(*sum, cycles, sum) || pto_sim_fail_at(s, PTO_E_OVERFLOW, task);
}

/* sim_pools.c; those that return bool return false after an error */
bool pto_sim_options_fit(const pto_sim_options *options);  /* what concerns executors: nothing contradicts */
bool pto_sim_keep_pool_sizes(pto_sim *s);                  /* the pools that the options name; false: no memory */
int32_t pto_sim_accept(pto_sim *s, const pto_columns *columns);    /* before any of it is fed: PTO_E_ARGUMENT, and s->failed_task */
void pto_sim_enter_more(pto_sim *s, int64_t node, const pto_columns *columns, int64_t task);   /* where the ring keeps more */
int64_t pto_sim_lowest_idle(const pto_sim *s, int64_t first, int64_t n);   /* executor, -1: none */
int64_t pto_sim_best_queue(const pto_sim *s, int64_t pool);   /* whose head goes first of all that workers have, -1: none is ready */
bool pto_sim_executor_figures(pto_sim *s, pto_sim_result *out);
void pto_sim_close(pto_sim *s);                            /* frees pools, queues, executors */

/* sim.c */
bool pto_sim_cancelled(pto_sim *s);    /* then the simulation has ended */

/* sim_step.c; those that return bool return false after an error */
bool pto_sim_task_submitted(pto_sim *s, int64_t node);     /* it may run once it is ready and PTO_SIM_RELEASED is set in its flags */
bool pto_sim_release(pto_sim *s, int64_t node);            /* a submitted task: set it, and let it run if it is ready */
bool pto_sim_mark_submitted(pto_sim *s, int64_t node);
void pto_sim_complete(pto_sim *s, int64_t node);           /* and all joins and marks that this completes */
void pto_sim_engage(pto_sim *s, int64_t executor, int64_t node);       /* it is idle, and gets a task off a queue */
bool pto_sim_begin(pto_sim *s, int64_t executor);          /* it runs that */
bool pto_sim_advance(pto_sim *s);      /* dispatch, then to the next completion; false too when nothing runs any more */

/* sim_calendar.c */
int32_t pto_sim_keep_calendar(pto_sim *s, const pto_columns *columns);     /* PTO_E_ARGUMENT: two tasks of a worker have one position */
bool pto_sim_keep_starts(pto_sim *s);      /* that the options name; false: no memory */
bool pto_sim_hold_for_start(pto_sim *s, int64_t executor, int64_t task);   /* which would begin too early; false: no memory */
bool pto_sim_begin_due(pto_sim *s);        /* executors whose tasks may begin now; false after an error */
int64_t pto_sim_calendar_head(const pto_sim *s, const pto_sim_queue *q);   /* the next task, -1: it may not run yet */

/* sim_serve.c */
bool pto_sim_open_servers(pto_sim *s);
void pto_sim_close_servers(pto_sim *s);
void pto_sim_list_server(pto_sim *s, int64_t worker);      /* it may have something to do */
bool pto_sim_want_retirement(pto_sim *s, int64_t worker, int64_t node);
bool pto_sim_serve(pto_sim *s);                            /* free workers begin what is to be done */
bool pto_sim_end_service(pto_sim *s);                      /* the first of s->serving */

/* sim_memory.c */
bool pto_sim_memory_begin(pto_sim *s, int64_t executor, int64_t cost, int64_t bytes);
int64_t pto_sim_memory_time(pto_sim *s);                   /* when the next task ends, -1: none runs */
int64_t pto_sim_memory_end(pto_sim *s);                    /* it ends now: returns its executor */

/* sim_front.c */
pto_sim_front *pto_sim_open(pto_sim *s, int32_t stream);   /* NULL: no memory */
void pto_sim_rest(pto_sim *s, pto_sim_front *f);
void pto_sim_hold(pto_sim *s, pto_sim_front *f, pto_sim_holder by);
void pto_sim_hold_by_window(pto_sim *s, pto_sim_front *f, int64_t weight);     /* until a task that takes `weight` has room */
void pto_sim_free_slots(pto_sim *s, pto_sim_front *f);     /* of all tasks that are done from the oldest on */
bool pto_sim_submit(pto_sim *s, pto_sim_front *f);         /* what can be */
bool pto_sim_submit_all(pto_sim *s);                       /* of the streams that may go on */
void pto_sim_pass_mark(pto_sim *s, pto_sim_front *f, int64_t node);    /* a mark has completed */
bool pto_sim_overflow(pto_sim *s);         /* end the simulation for a window that is held and may not be: false */
void pto_sim_wake(pto_sim *s);             /* streams that are no longer busy with a task go on */
bool pto_sim_reserve_weights(pto_sim *s);  /* as many as there are in the ring */
int64_t pto_sim_weigh(const pto_sim *s, const pto_columns *c, int64_t task);   /* unless all weigh 1 */

/* sim_release.c */
bool pto_sim_submit_by_rules(pto_sim *s, pto_sim_front *f, int64_t node);
bool pto_sim_settle_by_rules(pto_sim *s);

static inline bool pto_sim_settle(pto_sim *s)      /* all that is submitted now has been: release what is due, start */
{
    return s->is_plain || pto_sim_settle_by_rules(s);
}

static inline int64_t pto_sim_front_time(const pto_sim *s)     /* when time is to stop for streams or releases; -1: it need not */
{
    int64_t at = s->submitting.n > 0 ? s->submitting.data[0].key : -1;
    return s->n_backlog > 0 && (at < 0 || s->release_at < at) ? s->release_at : at;
}

static inline pto_sim_front *pto_sim_front_of(pto_sim *s, int32_t stream)      /* opened; NULL: no memory */
{
    if (__builtin_expect(stream < s->n_fronts && s->fronts[stream].is_open, 1))
        return &s->fronts[stream];
    return pto_sim_open(s, stream);
}

static inline int64_t pto_sim_weight_of(const pto_sim *s, int64_t node)
{
    return s->weights == NULL ? 1 : s->weights[node & (s->ring.capacity - 1)];
}

/* For room. What is held is within the limit: a task that takes nothing never waits. */
static inline bool pto_sim_must_wait(const pto_sim *s, const pto_sim_front *f, int64_t weight)
{
    return weight > s->window_limit - f->held;
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

static inline bool pto_sim_submit_task(pto_sim *s, pto_sim_front *f, int64_t node)     /* which is next, and need not wait */
{
    if (!s->is_plain)
        return pto_sim_submit_by_rules(s, f, node);
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    f->next = n->follower;
    n->flags = PTO_SIM_RELEASED;
    if (++f->held > s->window_high_water)
        s->window_high_water = f->held;
    return pto_sim_task_submitted(s, node);
}

static inline int64_t pto_sim_queue_of(const pto_sim *s, const pto_columns *c, int64_t task)
{
    if (c->task_pool == NULL)
        return s->options.is_shared ? 0 : c->task_worker[task];
    int64_t pool = c->task_pool[task];
    return s->options.is_shared ? pool : pool * s->options.n_workers + c->task_worker[task];
}

/* The queue of a task that has been accepted, and its rank there. */
static inline void pto_sim_enter_task(pto_sim *s, int64_t node, const pto_columns *c, int64_t task)
{
    pto_sim_at(&s->ring, node)->queue = (int32_t)pto_sim_queue_of(s, c, task);
    if (s->ring.keeps_more)
        pto_sim_enter_more(s, node, c, task);
}

/* ---- queues ---- */

/* What a queue would give next; node -1: nothing. */
static inline pto_sim_rank pto_sim_head(const pto_sim *s, const pto_sim_queue *q)
{
    if (s->calendar == NULL)
        return pto_sim_ready_head(&q->ready, &s->ring);
    int64_t node = pto_sim_calendar_head(s, q);
    return (pto_sim_rank){0, node < 0 ? 0 : pto_sim_at(&s->ring, node)->ready, node};
}

static inline int64_t pto_sim_take_head(pto_sim *s, pto_sim_queue *q)
{
    if (__builtin_expect(s->calendar == NULL, 1))
        return pto_sim_ready_pop(&q->ready, &s->ring);
    int64_t node = pto_sim_calendar_head(s, q);
    q->order += node >= 0;
    return node;
}

static inline void pto_sim_set_idle(pto_sim *s, int64_t executor, bool is_idle)
{
    if (s->seeks_idle && is_idle)
        s->idle[executor / 64] |= (uint64_t)1 << executor % 64;
    else if (s->seeks_idle)
        s->idle[executor / 64] &= ~((uint64_t)1 << executor % 64);
}

/* ---- clocks of executors ---- */

static inline int64_t pto_sim_late(const pto_sim *s, const pto_sim_pool *pool)
{
    int64_t since = pool->since > s->start_time ? pool->since : s->start_time;
    return pool->late + (pool->n_standing > 0 && s->is_started ? s->now - since : 0);
}

static inline int64_t pto_sim_waited(const pto_sim *s, const pto_sim_queue *q, int64_t late)
{
    return q->waited + (q->n_waiting > 0 ? s->now - q->since - (late - q->late) : 0);
}

static inline void pto_sim_stand(pto_sim *s, pto_sim_pool *pool)       /* one task more is ready */
{
    if (pool->n_standing++ == 0)
        pool->since = s->now;
}

static inline void pto_sim_take(pto_sim *s, pto_sim_pool *pool)        /* an executor took one */
{
    if (--pool->n_standing == 0)
        pool->late += s->now - (pool->since > s->start_time ? pool->since : s->start_time);
}

static inline void pto_sim_wait(pto_sim *s, pto_sim_queue *q)          /* one task more is submitted and not ready */
{
    if (q->n_waiting++ == 0) {
        q->since = s->now;
        q->late = pto_sim_late(s, &s->pools[q->pool]);
    }
}

static inline void pto_sim_wait_no_more(pto_sim *s, pto_sim_queue *q)
{
    if (q->n_waiting == 1)
        q->waited = pto_sim_waited(s, q, pto_sim_late(s, &s->pools[q->pool]));
    q->n_waiting--;
}

#pragma GCC visibility pop

#endif
