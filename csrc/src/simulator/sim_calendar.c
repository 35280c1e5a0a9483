/* sim_calendar.c: the order of an executor's tasks where a calendar gives it: every one waits for its turn.

   The first feed has to have all tasks: before it, nobody can say which one is the first of an executor. A task that has a start is
   given to its executor as any other, and the executor begins with it when it is time: what comes before, dispatching it too, goes on
   meanwhile. So a calendar that a simulation gave takes the same time again. */
#include "sim.h"

enum { NONE = -1 };

/* The first task whose position another task of its worker has, NONE: there is none. */
static int64_t repeated(const pto_turn *entries, int64_t n)
{
    int64_t task = NONE;
    for (int64_t i = 1; i < n; i++)
        if (entries[i].worker == entries[i - 1].worker && entries[i].position == entries[i - 1].position &&
            (task < 0 || entries[i].id < task))
            task = entries[i].id;
    return task;
}

/* Where each queue's tasks stand in s->calendar: counted, then filled in the order of positions. */
static bool fill(pto_sim *s, const pto_columns *c, const pto_turn *entries)
{
    s->calendar = malloc((size_t)c->n_tasks * sizeof *s->calendar);
    if (s->calendar == NULL)
        return pto_sim_fail(s);
    for (int64_t i = 0; i < c->n_tasks; i++)
        s->queues[pto_sim_queue_of(s, c, i)].order_end++;
    int64_t begin = 0;
    for (int64_t i = 0; i < s->n_queues; i++) {
        pto_sim_queue *q = &s->queues[i];
        int64_t n = q->order_end;
        q->order = q->order_end = begin;
        begin += n;
    }
    for (int64_t i = 0; i < c->n_tasks; i++)
        s->calendar[s->queues[pto_sim_queue_of(s, c, entries[i].id)].order_end++] = c->task_node[entries[i].id];
    return true;
}

bool pto_sim_keep_starts(pto_sim *s)
{
    const int64_t *starts = s->options.starts;
    int64_t n = s->options.n_starts;
    s->options.starts = NULL;          /* was borrowed */
    if (n == 0)
        return true;
    s->starts = n <= PTRDIFF_MAX / (int64_t)sizeof *starts ? malloc((size_t)n * sizeof *starts) : NULL;
    if (s->starts != NULL)
        memcpy(s->starts, starts, (size_t)n * sizeof *starts);
    return s->starts != NULL;
}

bool pto_sim_hold_for_start(pto_sim *s, int64_t executor, int64_t task)
{
    if (s->options.keep_trace) {
        s->held[task] = PTO_HELD_CALENDAR;
        s->held_by[task] = NONE;
    }
    return pto_sim_heap_push(&s->early, (pto_sim_entry){s->starts[task], executor}) || pto_sim_fail(s);
}

bool pto_sim_begin_due(pto_sim *s)
{
    while (s->early.n > 0 && s->early.data[0].key <= s->now)
        if (!pto_sim_begin(s, pto_sim_heap_pop(&s->early).id))
            return false;
    return true;
}

int32_t pto_sim_keep_calendar(pto_sim *s, const pto_columns *c)
{
    if (s->starts != NULL && c->n_tasks > s->options.n_starts) {
        pto_sim_fail_at(s, PTO_E_ARGUMENT, s->options.n_starts);
        return s->status;
    }
    pto_turn *entries = malloc((size_t)c->n_tasks * sizeof *entries);
    if (entries == NULL) {
        pto_sim_fail(s);
        return s->status;
    }
    for (int64_t i = 0; i < c->n_tasks; i++)
        entries[i] = (pto_turn){c->task_worker[i], c->task_position == NULL ? 0 : c->task_position[i], i};
    pto_turns_sort(entries, c->n_tasks);
    int64_t wrong = repeated(entries, c->n_tasks);
    if (wrong >= 0)
        pto_sim_fail_at(s, PTO_E_ARGUMENT, c->first_task + wrong);
    else
        fill(s, c, entries);
    free(entries);
    return s->status;
}

/* A task that has not been fed is one that has not been submitted. */
int64_t pto_sim_calendar_head(const pto_sim *s, const pto_sim_queue *q)
{
    int64_t node = q->order < q->order_end ? s->calendar[q->order] : s->ring.next;
    if (node >= s->ring.next)
        return NONE;
    const pto_sim_node *n = pto_sim_at(&s->ring, node);
    return n->state == PTO_SIM_READY && n->flags & PTO_SIM_RELEASED ? node : NONE;
}
