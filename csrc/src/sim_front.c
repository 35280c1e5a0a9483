/* sim_front.c: the streams of the simulator: each submits on its own, see sim.h. */
#include "sim.h"

enum { NONE = -1 };

pto_sim_front *pto_sim_open(pto_sim *s, int32_t stream)
{
    if (stream >= s->n_fronts) {
        if (!PTO_RESERVE(s->fronts, s->fronts_capacity, (int64_t)stream + 1) ||
            !PTO_RESERVE(s->to_submit, s->to_submit_capacity, (int64_t)stream + 1)) {
            pto_sim_fail(s);
            return NULL;
        }
        for (; s->n_fronts <= stream; s->n_fronts++)
            s->fronts[s->n_fronts] = (pto_sim_front){.first = NONE, .next = NONE, .last = NONE, .mark = NONE};
    }
    pto_sim_front *f = &s->fronts[stream];
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

static void let_go(pto_sim *s, pto_sim_front *f)
{
    f->hold = PTO_SIM_FREE;
    s->n_open_held -= f->is_open;
    if (f->next != NONE && !f->listed) {
        f->listed = true;
        s->to_submit[s->n_to_submit++] = (int32_t)(f - s->fronts);
    }
}

void pto_sim_free_slots(pto_sim *s, pto_sim_front *f)
{
    while (f->first != NONE && f->first != f->next) {
        const pto_sim_node *n = pto_sim_at(&s->ring, f->first);
        if (n->task >= 0 && n->state != PTO_SIM_DONE)
            break;
        f->n_held -= n->task >= 0;
        f->first = n->follower;
    }
    if (f->hold == PTO_SIM_BY_WINDOW && !pto_sim_is_full(s, f)) {
        if (s->now > f->since) {
            s->window_stalls++;
            s->window_stall_cycles += s->now - f->since;
        }
        let_go(s, f);
    }
}

static void count_stall(pto_sim *s, uint8_t stall, int64_t cycles)
{
    s->stalls[stall] += cycles > 0;
    s->stall_cycles[stall] += cycles;
}

void pto_sim_pass_mark(pto_sim *s, pto_sim_front *f, int64_t node)
{
    if (f->hold != PTO_SIM_BY_MARK || f->mark != node)
        return;
    const pto_sim_node *n = pto_sim_at(&s->ring, node);
    int64_t since = n->ready > f->since ? n->ready : f->since;     /* before that it stood behind its own statements */
    count_stall(s, PTO_STALL_NONE, since - f->since);
    count_stall(s, n->stall, s->now - since);
    let_go(s, f);
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
        if (pto_sim_is_full(s, f)) {
            pto_sim_hold(s, f, PTO_SIM_BY_WINDOW);
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
