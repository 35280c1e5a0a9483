/* sim_front.c: the streams of the simulator: each submits on its own, as its window, its marks and its AICPU let it, see sim.h. */
#include "sim.h"

enum { NONE = -1 };

pto_sim_front *pto_sim_open(pto_sim *s, int32_t stream)
{
    if (stream >= s->n_fronts) {
        if (!PTO_RESERVE(s->fronts, s->fronts_capacity, (int64_t)stream + 1) ||
            !PTO_RESERVE(s->to_submit, s->to_submit_capacity, (int64_t)stream + 1) ||
            !PTO_RESERVE(s->batches, s->batches_capacity, (int64_t)stream + 1)) {
            pto_sim_fail(s);
            return NULL;
        }
        for (; s->n_fronts <= stream; s->n_fronts++)
            s->fronts[s->n_fronts] = (pto_sim_front){.first = NONE, .next = NONE, .last = NONE, .mark = NONE, .held_by = NONE};
    }
    pto_sim_front *f = &s->fronts[stream];
    if (f->hold == PTO_SIM_FREE) {     /* while it rested, nothing held it */
        f->why = PTO_HELD_NOT;
        f->held_by = NONE;
    }
    f->is_open = true;
    s->n_open++;
    s->n_open_held += f->hold != PTO_SIM_FREE;
    return f;
}

void pto_sim_rest(pto_sim *s, pto_sim_front *f)
{
    f->is_open = false;
    s->n_open--;
    s->n_open_held -= f->hold != PTO_SIM_FREE;
}

/* ---- holding ---- */

void pto_sim_hold(pto_sim *s, pto_sim_front *f, pto_sim_holder by)
{
    f->hold = by;
    f->since = s->now;
    s->n_open_held += f->is_open;
}

/* Held by a window that it may not wait for, or in vain. */
static bool ends_simulation(const pto_sim *s, const pto_sim_front *f)
{
    return s->options.window_mode == PTO_WINDOW_ABORT || f->needs > s->options.window;
}

void pto_sim_hold_by_window(pto_sim *s, pto_sim_front *f, int64_t weight)
{
    f->needs = weight;
    s->n_overflows += ends_simulation(s, f);
    pto_sim_hold(s, f, PTO_SIM_BY_WINDOW);
}

/* by: what it waited for last, as pto_sim_result.held_by */
static void let_go(pto_sim *s, pto_sim_front *f, uint8_t why, int64_t by)
{
    if (s->now > f->since) {
        f->why = why;
        f->held_by = by;
    }
    f->hold = PTO_SIM_FREE;
    s->n_open_held -= f->is_open;
    if (f->next != NONE && !f->listed) {
        f->listed = true;
        s->to_submit[s->n_to_submit++] = (int32_t)(f - s->fronts);
    }
}

void pto_sim_free_slots(pto_sim *s, pto_sim_front *f)
{
    int64_t by = f->first;
    while (f->first != NONE && f->first != f->next) {
        const pto_sim_node *n = pto_sim_at(&s->ring, f->first);
        if (n->task >= 0 && n->state != PTO_SIM_DONE)
            break;
        f->held -= n->task >= 0 ? pto_sim_weight_of(s, f->first) : 0;
        f->first = n->follower;
    }
    if (f->hold == PTO_SIM_BY_WINDOW && !pto_sim_must_wait(s, f, f->needs)) {
        if (s->now > f->since) {
            s->window_stalls++;
            pto_sim_count(s, &s->window_stall_cycles, s->now - f->since, NONE);
        }
        s->n_overflows -= ends_simulation(s, f);
        let_go(s, f, PTO_HELD_WINDOW, pto_sim_at(&s->ring, by)->task);
    }
}

bool pto_sim_overflow(pto_sim *s)
{
    int64_t task = INT64_MAX;
    for (int64_t i = 0; i < s->n_fronts; i++) {
        const pto_sim_front *f = &s->fronts[i];
        if (f->hold != PTO_SIM_BY_WINDOW || !ends_simulation(s, f))
            continue;
        int64_t found = f->next != NONE ? pto_sim_at(&s->ring, f->next)->task : s->n_tasks;    /* or it is being fed */
        task = found < task ? found : task;
    }
    return pto_sim_fail_at(s, PTO_E_WINDOW, task);
}

void pto_sim_wake(pto_sim *s)
{
    while (s->submitting.n > 0 && s->submitting.data[0].key <= s->now)
        let_go(s, &s->fronts[pto_sim_heap_pop(&s->submitting).id], PTO_HELD_SUBMIT, NONE);
}

static void count_stall(pto_sim *s, uint8_t stall, int64_t cycles)
{
    s->stalls[stall] += cycles > 0;
    pto_sim_count(s, &s->stall_cycles[stall], cycles, NONE);
}

void pto_sim_pass_mark(pto_sim *s, pto_sim_front *f, int64_t node)
{
    if (f->hold != PTO_SIM_BY_MARK || f->mark != node)
        return;
    const pto_sim_node *n = pto_sim_at(&s->ring, node);
    int64_t since = n->ready > f->since ? n->ready : f->since;     /* before that it stood behind its own statements */
    count_stall(s, PTO_STALL_NONE, since - f->since);
    count_stall(s, n->stall, s->now - since);
    let_go(s, f, PTO_HELD_MARK, node);
}

/* ---- weights ---- */

bool pto_sim_reserve_weights(pto_sim *s)
{
    if (s->weights_capacity == s->ring.capacity)
        return true;
    int64_t *weights = malloc((size_t)s->ring.capacity * sizeof *weights);
    if (weights == NULL)
        return pto_sim_fail(s);
    for (int64_t node = s->ring.first; node < s->ring.next && s->weights != NULL; node++)
        weights[node & (s->ring.capacity - 1)] = s->weights[node & (s->weights_capacity - 1)];
    free(s->weights);
    s->weights = weights;
    s->weights_capacity = s->ring.capacity;
    return true;
}

int64_t pto_sim_weigh(const pto_sim *s, const pto_columns *c, int64_t task)
{
    int64_t n = c->arg_begin[task + 1] - c->arg_begin[task], sum = 0;
    if (s->options.window_unit == PTO_WINDOW_ENTRIES || n == 0)
        return n;
    const pto_arg *args = c->args + c->arg_begin[task];
    for (int64_t i = 0; i < n; i++) {
        int64_t bytes;
        if ((args[i].flags & (PTO_KEPT | PTO_WRITE)) != (PTO_KEPT | PTO_WRITE))
            continue;
        if (__builtin_mul_overflow(args[i].extent[0], args[i].extent[1], &bytes) ||
            __builtin_mul_overflow(bytes, args[i].elem_bytes, &bytes))
            bytes = INT64_MAX;
        sum = pto_sim_add(sum, bytes);
    }
    return sum;
}

/* ---- submitting ---- */

static bool submit_mark(pto_sim *s, pto_sim_front *f, int64_t node)
{
    if (f->first == node)
        pto_sim_free_slots(s, f);
    /* held first, so that completing at once lets it go */
    if (pto_sim_at(&s->ring, node)->flags & PTO_MARK_BLOCKS) {
        f->mark = node;
        pto_sim_hold(s, f, PTO_SIM_BY_MARK);
    }
    return pto_sim_mark_submitted(s, node);
}

bool pto_sim_submit(pto_sim *s, pto_sim_front *f)
{
    while (f->next != NONE && f->hold == PTO_SIM_FREE) {
        int64_t node = f->next;
        const pto_sim_node *n = pto_sim_at(&s->ring, node);
        if (n->task < 0) {
            f->next = n->follower;
            if (!submit_mark(s, f, node))
                return false;
            continue;
        }
        if (pto_sim_must_wait(s, f, pto_sim_weight_of(s, node))) {
            pto_sim_hold_by_window(s, f, pto_sim_weight_of(s, node));
            break;
        }
        if (!pto_sim_submit_task(s, f, node))
            return false;
    }
    return true;
}

bool pto_sim_submit_all(pto_sim *s)
{
    while (s->n_to_submit > 0) {
        pto_sim_front *f = &s->fronts[s->to_submit[--s->n_to_submit]];
        f->listed = false;
        if (!pto_sim_submit(s, f))
            return false;
    }
    return true;
}
