/* sim_calendar.c: the tasks of a calendar, queue by queue, see sim_calendar.h. */
#include "sim_calendar.h"

#include "../record/positions.h"

/* The first task whose position another task of its worker has, -1: there is none. */
static int64_t repeated(const pto_position *entries, int64_t n)
{
    int64_t task = -1;
    for (int64_t i = 1; i < n; i++)
        if (entries[i].worker == entries[i - 1].worker && entries[i].position == entries[i - 1].position &&
            (task < 0 || entries[i].id < task))
            task = entries[i].id;
    return task;
}

/* Fill pools->calendar: count the tasks of each queue, then place them in the order of positions.
   Invariant of the last loop: a queue's tasks placed so far stand from `order` up to `order_end`. */
static bool fill(pto_sim_pools *pools, const pto_columns *c, const pto_position *entries)
{
    pools->calendar = malloc((size_t)c->n_tasks * sizeof *pools->calendar);
    if (pools->calendar == NULL)
        return pto_sim_fail(pools->clock);
    for (int64_t i = 0; i < c->n_tasks; i++)
        pools->queues[pto_sim_queue_of(pools, c, i)].order_end++;
    int64_t begin = 0;
    for (int64_t i = 0; i < pools->n_queues; i++) {
        pto_sim_queue *q = &pools->queues[i];
        int64_t n = q->order_end;
        q->order = q->order_end = begin;
        begin += n;
    }
    for (int64_t i = 0; i < c->n_tasks; i++)
        pools->calendar[pools->queues[pto_sim_queue_of(pools, c, entries[i].id)].order_end++] = c->task_node[entries[i].id];
    return true;
}

int32_t pto_sim_calendar_keep(pto_sim_pools *pools, const pto_columns *c)
{
    pto_sim_clock *clock = pools->clock;
    if (pools->options->n_starts > 0 && c->n_tasks > pools->options->n_starts) {
        pto_sim_fail_at(clock, PTO_E_ARGUMENT, pools->options->n_starts);
        return clock->status;
    }
    pto_position *entries = malloc((size_t)c->n_tasks * sizeof *entries);
    if (entries == NULL) {
        pto_sim_fail(clock);
        return clock->status;
    }
    for (int64_t i = 0; i < c->n_tasks; i++)
        entries[i] = (pto_position){c->task_worker[i], c->task_position == NULL ? 0 : c->task_position[i], i};
    pto_positions_sort(entries, c->n_tasks);
    int64_t wrong = repeated(entries, c->n_tasks);
    if (wrong >= 0)
        pto_sim_fail_at(clock, PTO_E_ARGUMENT, c->first_task + wrong);
    else
        fill(pools, c, entries);
    free(entries);
    return clock->status;
}
