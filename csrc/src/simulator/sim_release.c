/* sim_release.c: what becomes of tasks that streams submit when a schedule says more than nothing: they take of the window by weight,
   keep their stream's AICPU busy, wait for a batch or for their turn in a rate, and for the start, see sim.h.

   A rest of a batch is released, and executors start before as many tasks as they are to wait for, when streams cannot go on. That is
   looked at before dispatch, when all that can be submitted at this time has been. */
#include "sim.h"

enum { NONE = -1 };

/* All that can be submitted has been, so a stream that no time lets go is held, or at its end. */
static bool cannot_go_on(const pto_sim_front *f)
{
    return f->hold != PTO_SIM_BY_SUBMIT;
}

static void start(pto_sim *s)
{
    s->is_started = true;
    s->start_time = s->now;
}

/* ---- releasing ---- */

static bool release(pto_sim *s, int64_t node)
{
    if (s->options.keep_trace)
        s->released[pto_sim_at(&s->ring, node)->task] = s->now;
    return pto_sim_release(s, node);
}

/* No node of a batch has left the ring: its first task has not even run. */
static bool release_batch(pto_sim *s, pto_sim_front *f)
{
    for (int64_t node = f->batch; f->n_batch > 0;) {
        const pto_sim_node *n = pto_sim_at(&s->ring, node);
        int64_t at = node;
        node = n->follower;
        if (n->task < 0)
            continue;
        f->n_batch--;
        if (!release(s, at))
            return false;
    }
    return true;
}

static bool join_batch(pto_sim *s, pto_sim_front *f, int64_t node)
{
    if (f->n_batch++ == 0)
        f->batch = node;
    if (f->n_batch == s->options.timing_n)
        return release_batch(s, f);
    if (!f->batched) {
        f->batched = true;
        s->batches[s->n_batches++] = (int32_t)(f - s->fronts);
    }
    return true;
}

static bool release_rests(pto_sim *s)
{
    int64_t n_kept = 0;
    for (int64_t i = 0; i < s->n_batches; i++) {
        pto_sim_front *f = &s->fronts[s->batches[i]];
        if (cannot_go_on(f) && !release_batch(s, f))
            return false;
        f->batched = f->n_batch > 0;
        if (f->batched)
            s->batches[n_kept++] = s->batches[i];
    }
    s->n_batches = n_kept;
    return true;
}

/* Until a task may run, its `ready` is when it was submitted. */
static pto_sim_entry backlog_entry(const pto_sim *s, int64_t node)
{
    return (pto_sim_entry){pto_sim_at(&s->ring, node)->ready, node};
}

static bool join_backlog(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->ready = s->now;
    s->n_backlog++;
    if (s->backlog_first == NONE) {
        s->backlog_first = s->backlog_last = node;
    } else if (pto_sim_before(backlog_entry(s, node), backlog_entry(s, s->backlog_last))) {
        return pto_sim_heap_push(&s->backlog_late, backlog_entry(s, node)) || pto_sim_fail(s);
    } else {
        pto_sim_at(&s->ring, s->backlog_last)->next = node;
        s->backlog_last = node;
    }
    return true;
}

static int64_t leave_backlog(pto_sim *s)
{
    int64_t node = s->backlog_first;
    s->n_backlog--;
    if (s->backlog_late.n > 0 && (node == NONE || pto_sim_before(s->backlog_late.data[0], backlog_entry(s, node))))
        return pto_sim_heap_pop(&s->backlog_late).id;
    s->backlog_first = pto_sim_at(&s->ring, node)->next;
    return node;
}

/* A release that nobody waited for when it was due happens now, and the next is due so much later; one that happened in time, though
   a part of a cycle late, moves nothing. */
static bool release_due(pto_sim *s)
{
    int64_t num = s->options.release_num, den = s->options.release_den;
    while (s->n_backlog > 0 && s->release_at <= s->now) {
        if (s->release_at < s->now) {
            s->release_whole = s->now;
            s->release_part = 0;
        }
        s->release_whole = pto_sim_add(s->release_whole, num / den);
        s->release_part += num % den;
        if (s->release_part >= den) {
            s->release_part -= den;
            s->release_whole = pto_sim_add(s->release_whole, 1);
        }
        s->release_at = pto_sim_add(s->release_whole, s->release_part > 0);
        if (!release(s, leave_backlog(s)))
            return false;
    }
    return true;
}

bool pto_sim_settle_by_rules(pto_sim *s)
{
    if (!release_rests(s) || !release_due(s))
        return false;
    bool may_start = !s->is_started;
    for (int64_t i = 0; i < s->n_fronts && may_start; i++)
        may_start = cannot_go_on(&s->fronts[i]);
    if (may_start)
        start(s);
    return true;
}

/* ---- submitting ---- */

static bool take_room(pto_sim *s, pto_sim_front *f, int64_t node)
{
    int64_t weight = pto_sim_weight_of(s, node);
    if (s->options.window_mode == PTO_WINDOW_BENCHMARK && s->options.window > 0 && weight > 0)
        s->window_stalls += weight > s->options.window - f->held;
    if (__builtin_add_overflow(f->held, weight, &f->held))
        return pto_sim_fail_at(s, PTO_E_ARGUMENT, pto_sim_at(&s->ring, node)->task);
    if (f->held > s->window_high_water)
        s->window_high_water = f->held;
    return true;
}

bool pto_sim_submit_by_rules(pto_sim *s, pto_sim_front *f, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    bool is_delayed = s->options.timing == PTO_TIMING_BATCHED || s->options.timing == PTO_TIMING_RATE;
    f->next = n->follower;
    n->flags = is_delayed ? 0 : PTO_SIM_RELEASED;
    if (s->options.keep_trace) {
        s->submit[n->task] = s->released[n->task] = s->now;
        s->front_why[n->task] = f->why;
        s->front_by[n->task] = f->held_by;
    }
    if (++s->n_submitted == s->options.start_after && !s->is_started)
        start(s);
    if (!take_room(s, f, node) || !pto_sim_task_submitted(s, node))
        return false;
    if (s->options.timing == PTO_TIMING_BATCHED && !join_batch(s, f, node))
        return false;
    if (s->options.timing == PTO_TIMING_RATE && !join_backlog(s, node))
        return false;
    if (s->options.submit_cycles == 0)
        return true;
    pto_sim_hold(s, f, PTO_SIM_BY_SUBMIT);
    return pto_sim_heap_push(&s->submitting, (pto_sim_entry){pto_sim_add(s->now, s->options.submit_cycles), f - s->fronts}) ||
           pto_sim_fail(s);
}
