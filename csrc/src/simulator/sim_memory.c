/* sim_memory.c: the memory that running tasks share, see sim_memory.h.

   One factor slows down all tasks that ask, so they run on one clock of their own: a cycle moves the clock by bounded / asked, or by 1.
   A task ends `cost` after its start on that clock; a change of the factor moves no task's place among the others. */
#include "sim_memory.h"

#include "../collections/array.h"
#include "../collections/binary_heap.h"

/* Of a cycle: doubles are not exact, and an end that only their rounding puts behind a whole cycle is not to move to the next. */
#define SLACK 1e-6
#define FAR 4611686018427387904.0      /* 2^62 */

static inline bool is_before(pto_sim_flow a, pto_sim_flow b)
{
    return a.end < b.end || (a.end == b.end && a.executor < b.executor);
}

/* Bring the clock to now. The clock starts again when nobody runs, so that long simulations are as exact as short ones. */
static void bring_forward(pto_sim_memory *m, int64_t now)
{
    m->clock = m->n == 0 ? 0 : m->clock + (double)(now - m->since) / m->factor;
    m->since = now;
    if (m->clock < 1073741824.0)
        return;
    for (int64_t i = 0; i < m->n; i++)
        m->flows[i].end -= m->clock;
    m->clock = 0;
}

static void count_asked(pto_sim_memory *m)
{
    double asked = 0;
    for (int64_t i = 0; i < m->n; i++)
        asked += m->flows[i].asks;
    m->factor = asked > m->bytes_per_cycle ? asked / m->bytes_per_cycle : 1;
    m->is_stale = false;
}

void pto_sim_memory_init(pto_sim_memory *m, double bytes_per_cycle)
{
    *m = (pto_sim_memory){.bytes_per_cycle = bytes_per_cycle, .factor = 1};
}

void pto_sim_memory_close(pto_sim_memory *m)
{
    free(m->flows);
}

bool pto_sim_memory_begin(pto_sim_memory *m, int64_t now, int64_t executor, int64_t cost, int64_t bytes)
{
    if (!PTO_RESERVE(m->flows, m->capacity, m->n + 1))
        return false;
    bring_forward(m, now);
    pto_sim_flow flow = {m->clock + (double)cost, (double)bytes / (double)cost, executor};
    m->n++;
    PTO_SIFT_UP(m->flows, m->n, flow, is_before);
    m->is_stale = true;
    return true;
}

int64_t pto_sim_memory_next(pto_sim_memory *m)
{
    if (m->n == 0)
        return -1;
    if (m->is_stale)
        count_asked(m);
    double left = (m->flows[0].end - m->clock) * m->factor - SLACK;
    if (left >= FAR)
        return INT64_MAX;
    int64_t whole = left > 0 ? (int64_t)left : 0;
    return pto_sim_add(m->since, whole + ((double)whole < left));
}

int64_t pto_sim_memory_end(pto_sim_memory *m, int64_t now)
{
    int64_t executor = m->flows[0].executor;
    bring_forward(m, now);
    pto_sim_flow moved = m->flows[--m->n];
    PTO_SIFT_DOWN(m->flows, m->n, moved, is_before);
    m->is_stale = true;
    return executor;
}
