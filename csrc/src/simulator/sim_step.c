/* sim_step.c: the executors of the simulator: running, completing, going on in time, see sim.h. */
#include "sim.h"

enum { NONE = -1 };

/* ---- executors ---- */

static void list_for_dispatch(pto_sim *s, int64_t queue)
{
    pto_sim_queue *q = &s->queues[queue];
    if (__builtin_expect(s->servers != NULL, 0))
        pto_sim_list_server(s, s->options.is_shared ? 0 : queue % s->options.n_workers);
    if (q->n_idle > 0 && !q->listed) {
        q->listed = true;
        s->to_dispatch[s->n_to_dispatch++] = queue;
    }
}

/* It is ready and released. */
static bool let_run(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    pto_sim_queue *q = &s->queues[n->queue];
    n->ready = s->now;
    list_for_dispatch(s, n->queue);
    pto_sim_stand(s, &s->pools[q->pool]);
    return s->calendar != NULL || pto_sim_ready_push(&q->ready, &s->ring, node) || pto_sim_fail(s);
}

static bool make_ready(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->state = PTO_SIM_READY;
    if (s->options.keep_trace)
        s->ready[n->task] = s->now;
    return !(n->flags & PTO_SIM_RELEASED) || let_run(s, node);
}

bool pto_sim_release(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->flags |= PTO_SIM_RELEASED;
    return n->state != PTO_SIM_READY || let_run(s, node);
}

bool pto_sim_task_submitted(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->state = PTO_SIM_WAITING;
    if (n->n_pending == 0)
        return make_ready(s, node);
    pto_sim_wait(s, &s->queues[n->queue]);
    return true;
}

/* What a task waited for last, of what happened until it was dispatched: see sim.h. held_by has the last edge's source. */
static void explain(pto_sim *s, const pto_sim_executor *e, const pto_sim_node *n)
{
    int64_t task = n->task, latest = s->submit[task], by = s->front_by[task];
    uint8_t held = s->front_why[task];
    if (s->ready[task] > latest) {
        latest = s->ready[task];
        held = PTO_HELD_EDGE;
        by = s->held_by[task];
    }
    if (s->released[task] > latest) {
        latest = s->released[task];
        held = PTO_HELD_RELEASE;
        by = NONE;
    }
    if (s->start_time > latest) {
        latest = s->start_time;
        held = PTO_HELD_START;
        by = NONE;
    }
    if (s->now > latest && e->since < s->now) {
        held = PTO_HELD_DISPATCH;
        by = NONE;
    } else if (s->now > latest) {
        bool is_passed_over = s->calendar != NULL && e->last_task >= 0 && s->start[e->last_task] > latest;
        held = is_passed_over ? PTO_HELD_CALENDAR : PTO_HELD_EXECUTOR;
        by = e->last_task;
    }
    s->held[task] = held;
    s->held_by[task] = by;
}

static void read_clocks(const pto_sim *s, const pto_sim_queue *q, pto_sim_executor *e)     /* as it becomes idle */
{
    e->idle_late = pto_sim_late(s, &s->pools[q->pool]);
    e->idle_waited = pto_sim_waited(s, q, e->idle_late);
}

static inline void engage(pto_sim *s, int64_t at, int64_t node)
{
    pto_sim_executor *e = &s->executors[at];
    pto_sim_queue *q = &s->queues[e->queue];
    pto_sim_take(s, &s->pools[q->pool]);
    if (s->now > e->since) {
        int64_t late = pto_sim_late(s, &s->pools[q->pool]);
        e->waiting += pto_sim_waited(s, q, late) - e->idle_waited;
        e->late += late - e->idle_late;
    }
    if (s->options.keep_trace)
        explain(s, e, pto_sim_at(&s->ring, node));
    pto_sim_set_idle(s, at, false);
    q->n_idle--;
    e->running = node;
    e->since = s->now;
    e->tasks_run++;
}

static inline bool begin(pto_sim *s, int64_t at)
{
    pto_sim_executor *e = &s->executors[at];
    const pto_sim_node *n = pto_sim_at(&s->ring, e->running);
    if (__builtin_expect(s->starts != NULL, 0) && s->starts[n->task] > s->now)
        return pto_sim_hold_for_start(s, at, n->task);
    if (s->options.keep_trace) {
        s->start[n->task] = s->now;
        s->executor[n->task] = at;
        e->last_task = n->task;
    }
    if (s->options.bytes_per_cycle > 0) {
        int64_t bytes = pto_sim_more_of(&s->ring, e->running).bytes;
        if (bytes > 0 && n->cost > 0)
            return pto_sim_memory_begin(s, at, n->cost, bytes);
    }
    return pto_sim_heap_push(&s->running, (pto_sim_entry){pto_sim_add(s->now, n->cost), at}) || pto_sim_fail(s);
}

void pto_sim_engage(pto_sim *s, int64_t executor, int64_t node)
{
    engage(s, executor, node);
}

bool pto_sim_begin(pto_sim *s, int64_t executor)
{
    pto_sim_executor *e = &s->executors[executor];
    e->late += s->now - e->since;
    e->since = s->now;
    return begin(s, executor);
}

/* Its task has come to its end: tell others, or the worker that is to tell them. */
static bool end_task(pto_sim *s, int64_t at)
{
    pto_sim_executor *e = &s->executors[at];
    pto_sim_queue *q = &s->queues[e->queue];
    int64_t node = e->running;
    if (s->options.keep_trace)
        s->end[pto_sim_at(&s->ring, node)->task] = s->now;
    e->busy += s->now - e->since;
    e->running = NONE;
    e->since = s->now;
    if (q->n > 1 || s->servers != NULL)      /* else dispatch() does, if it still is idle then */
        read_clocks(s, q, e);
    pto_sim_set_idle(s, at, true);
    q->n_idle++;
    list_for_dispatch(s, e->queue);
    if (s->servers != NULL)
        return pto_sim_want_retirement(s, e->worker, node);
    s->last_completion = s->now;
    pto_sim_complete(s, node);
    return true;
}

/* Where there are both, ready tasks and idle executors, in queues of one pool: executors take tasks by number, whosever they are. */
static bool steal(pto_sim *s)
{
    for (int64_t p = 0; p < s->n_pools; p++) {
        const pto_sim_pool *pool = &s->pools[p];
        int64_t n_executors = pool->n_executors * s->options.n_workers, end = pool->first_executor + n_executors;
        for (int64_t at = pool->first_executor; pool->n_standing > 0; at++) {
            at = pto_sim_lowest_idle(s, at, end - at);
            if (at < 0)
                break;
            engage(s, at, pto_sim_take_head(s, &s->queues[pto_sim_best_queue(s, p)]));
            if (!begin(s, at))
                return false;
        }
    }
    return true;
}

static bool dispatch(pto_sim *s)
{
    if (!s->is_started)
        return true;
    if (s->early.n > 0 && !pto_sim_begin_due(s))
        return false;
    if (s->servers != NULL)
        return pto_sim_serve(s);
    for (int64_t i = 0; i < s->n_to_dispatch; i++) {
        pto_sim_queue *q = &s->queues[s->to_dispatch[i]];
        q->listed = false;
        while (q->n_idle > 0) {
            int64_t node = pto_sim_take_head(s, q);
            if (node < 0)
                break;
            int64_t at = q->n == 1 ? q->first : pto_sim_lowest_idle(s, q->first, q->n);
            engage(s, at, node);
            if (!begin(s, at))
                return false;
        }
        if (q->n == 1 && q->n_idle > 0 && s->executors[q->first].since == s->now)
            read_clocks(s, q, &s->executors[q->first]);
    }
    s->n_to_dispatch = 0;
    return !s->options.steals || s->options.is_shared || steal(s);
}

/* ---- completing ---- */

static void complete_soon(pto_sim *s, int64_t node)
{
    pto_sim_at(&s->ring, node)->next = s->to_complete;
    s->to_complete = node;
}

/* All that a mark waits for is there: only its delay is left. */
static void ripen(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->state = PTO_SIM_READY;
    if (n->cost == 0)
        complete_soon(s, node);
    else if (!pto_sim_heap_push(&s->delayed, (pto_sim_entry){pto_sim_add(s->now, n->cost), node}))
        pto_sim_fail(s);
}

/* A predecessor of the node, src, has completed. */
static void arrive(pto_sim *s, int64_t node, int64_t src, bool is_order)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    if (is_order)
        n->ready = s->now;
    if (--n->n_pending > 0)
        return;
    if (n->stream < 0) {
        complete_soon(s, node);
    } else if (n->state == PTO_SIM_WAITING && n->task < 0) {
        ripen(s, node);
    } else if (n->state == PTO_SIM_WAITING) {
        pto_sim_wait_no_more(s, &s->queues[n->queue]);
        if (s->options.keep_trace)
            s->held_by[n->task] = src;
        make_ready(s, node);
    }
}

static void release(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->state = PTO_SIM_DONE;
    for (int32_t at = n->first_link; at >= 0;) {
        pto_sim_link *l = &s->links[at];
        int64_t succ = l->node;
        int32_t next = l->next;
        bool is_order = l->is_order;
        l->next = s->links_free;
        s->links_free = at;
        at = next;
        arrive(s, succ, node, is_order);
    }
    if (n->stream < 0)
        return;
    pto_sim_front *f = &s->fronts[n->stream];
    if (n->task < 0)
        pto_sim_pass_mark(s, f, node);
    else if (f->first == node)
        pto_sim_free_slots(s, f);
}

void pto_sim_complete(pto_sim *s, int64_t node)
{
    release(s, node);
    while (s->to_complete >= 0) {
        int64_t at = s->to_complete;
        s->to_complete = pto_sim_at(&s->ring, at)->next;
        release(s, at);
    }
    while (s->ring.first < s->ring.next && pto_sim_at(&s->ring, s->ring.first)->state == PTO_SIM_DONE)
        s->ring.first++;
}

bool pto_sim_mark_submitted(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->state = PTO_SIM_WAITING;
    if (n->n_pending > 0)
        return true;
    if (n->cost == 0)
        pto_sim_complete(s, node);
    else
        ripen(s, node);
    return s->status == PTO_OK;
}

/* The next time at which anything happens, -1: none. It is now for a task of no cost. */
static int64_t next_time(pto_sim *s)
{
    int64_t at = pto_sim_front_time(s);
    if (s->running.n > 0 && (at < 0 || s->running.data[0].key < at))
        at = s->running.data[0].key;
    if (s->delayed.n > 0 && (at < 0 || s->delayed.data[0].key < at))
        at = s->delayed.data[0].key;
    if (s->serving.n > 0 && (at < 0 || s->serving.data[0].key < at))
        at = s->serving.data[0].key;
    if (s->early.n > 0 && (at < 0 || s->early.data[0].key < at))
        at = s->early.data[0].key;
    if (s->memory.n > 0 && (at < 0 || pto_sim_memory_time(s) < at))
        at = pto_sim_memory_time(s);
    return at;
}

/* Tasks that share memory end later than they would alone. */
static bool end_slowed(pto_sim *s)
{
    while (s->memory.n > 0 && pto_sim_memory_time(s) <= s->now) {
        int64_t at = pto_sim_memory_end(s);
        const pto_sim_executor *e = &s->executors[at];
        const pto_sim_node *n = pto_sim_at(&s->ring, e->running);
        if (!pto_sim_count(s, &s->memory_cycles, s->now - e->since - n->cost, n->task) || !end_task(s, at))
            return false;
    }
    return true;
}

/* The next time is the last one that 64 bits hold, and may be beyond it: for a task that runs, or is dispatched or retired, if any. */
static bool end_of_time(pto_sim *s)
{
    int64_t node = NONE;
    if (s->running.n > 0 && s->running.data[0].key == INT64_MAX)
        node = s->executors[s->running.data[0].id].running;
    else if (s->memory.n > 0 && pto_sim_memory_time(s) == INT64_MAX)
        node = s->executors[s->memory.flows[0].executor].running;
    else if (s->serving.n > 0 && s->serving.data[0].key == INT64_MAX)
        node = s->servers[s->serving.data[0].id].node;
    return pto_sim_fail_at(s, PTO_E_OVERFLOW, node < 0 ? NONE : pto_sim_at(&s->ring, node)->task);
}

/* All that is to happen at the next time completes, then streams submit what they may. */
bool pto_sim_advance(pto_sim *s)
{
    if (pto_sim_cancelled(s) || !pto_sim_settle(s) || !dispatch(s))
        return false;
    int64_t next = next_time(s);
    if (next != s->now && s->n_overflows > 0)
        return pto_sim_overflow(s);
    if (next < 0)
        return false;
    if (next == INT64_MAX)
        return end_of_time(s);
    s->now = next;
    while (s->running.n > 0 && s->running.data[0].key == s->now)
        if (!end_task(s, pto_sim_heap_pop(&s->running).id))
            return false;
    if (!end_slowed(s))
        return false;
    while (s->serving.n > 0 && s->serving.data[0].key == s->now)
        if (!pto_sim_end_service(s))
            return false;
    while (s->delayed.n > 0 && s->delayed.data[0].key == s->now)
        pto_sim_complete(s, pto_sim_heap_pop(&s->delayed).id);
    if (s->submitting.n > 0)
        pto_sim_wake(s);
    return pto_sim_submit_all(s) && s->status == PTO_OK;
}
