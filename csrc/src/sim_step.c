/* sim_step.c: the executors of the simulator: running, completing, going on in time, see sim.h. */
#include "sim.h"

/* ---- executors ---- */

/* Count waiting up to now; to be called before idleness or n_waiting changes. */
static void count_waiting(pto_sim *s, int64_t at)
{
    pto_sim_executor *e = &s->executors[at];
    if (e->running < 0 && e->n_waiting > 0)
        s->waiting[at] += s->now - e->since;
    e->since = s->now;
}

static void list_for_dispatch(pto_sim *s, int64_t at)
{
    pto_sim_executor *e = &s->executors[at];
    if (e->running < 0 && !e->listed) {
        e->listed = true;
        s->to_dispatch[s->n_to_dispatch++] = at;
    }
}

/* It is ready and released. */
static bool let_run(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->ready = s->now;
    list_for_dispatch(s, n->executor);
    return pto_sim_ready_push(&s->executors[n->executor].ready, &s->ring, node) || pto_sim_fail(s);
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
    count_waiting(s, n->executor);
    s->executors[n->executor].n_waiting++;
    return true;
}

static bool dispatch(pto_sim *s)
{
    if (!s->is_started)
        return true;
    for (int64_t i = 0; i < s->n_to_dispatch; i++) {
        int64_t at = s->to_dispatch[i];
        pto_sim_executor *e = &s->executors[at];
        e->listed = false;
        int64_t node = pto_sim_ready_pop(&e->ready, &s->ring);
        if (node < 0)
            continue;
        const pto_sim_node *n = pto_sim_at(&s->ring, node);
        count_waiting(s, at);
        e->running = node;
        s->busy[at] = pto_sim_add(s->busy[at], n->cost);
        s->tasks_run[at]++;
        if (s->options.keep_trace) {
            s->start[n->task] = s->now;
            s->end[n->task] = pto_sim_add(s->now, n->cost);
        }
        if (!pto_sim_heap_push(&s->running, (pto_sim_entry){pto_sim_add(s->now, n->cost), at}))
            return pto_sim_fail(s);
    }
    s->n_to_dispatch = 0;
    return true;
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

/* A predecessor of the node has completed. */
static void arrive(pto_sim *s, int64_t node, bool is_order)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    if (is_order && --n->executor == 0)
        n->ready = s->now;
    if (--n->n_pending > 0)
        return;
    if (n->stream < 0) {
        complete_soon(s, node);
    } else if (n->state == PTO_SIM_WAITING && n->task < 0) {
        ripen(s, node);
    } else if (n->state == PTO_SIM_WAITING) {
        count_waiting(s, n->executor);
        s->executors[n->executor].n_waiting--;
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
        arrive(s, succ, is_order);
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
static int64_t next_time(const pto_sim *s)
{
    int64_t at = pto_sim_front_time(s);
    if (s->running.n > 0 && (at < 0 || s->running.data[0].key < at))
        at = s->running.data[0].key;
    if (s->delayed.n > 0 && (at < 0 || s->delayed.data[0].key < at))
        at = s->delayed.data[0].key;
    return at;
}

/* All that is to happen at the next time completes, then streams submit what they may. */
bool pto_sim_advance(pto_sim *s)
{
    if (!pto_sim_settle(s) || !dispatch(s))
        return false;
    int64_t next = next_time(s);
    if ((next != s->now && !pto_sim_time_may_pass(s)) || next < 0)
        return false;
    s->now = next;
    while (s->running.n > 0 && s->running.data[0].key == s->now) {
        int64_t at = pto_sim_heap_pop(&s->running).id;
        pto_sim_executor *e = &s->executors[at];
        int64_t node = e->running;
        count_waiting(s, at);
        e->running = -1;
        s->last_completion = s->now;
        list_for_dispatch(s, at);
        pto_sim_complete(s, node);
    }
    while (s->delayed.n > 0 && s->delayed.data[0].key == s->now)
        pto_sim_complete(s, pto_sim_heap_pop(&s->delayed).id);
    pto_sim_wake(s);
    return pto_sim_submit_all(s) && s->status == PTO_OK;
}
