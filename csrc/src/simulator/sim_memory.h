/* sim_memory.h: the memory that running tasks share: what each asks for a cycle, and how much longer all take when that is too much.

   Ownership: the executors own pto_sim_memory, which owns its flows. Units: times in cycles of the event clock, but for `end` and `clock`,
   which count cycles that a task would take alone. */
#ifndef PTO_SIM_MEMORY_H
#define PTO_SIM_MEMORY_H
#include "sim_clock.h"

#pragma GCC visibility push(hidden)

/* A task that runs and asks for memory. */
typedef struct pto_sim_flow {
    double end;                /* on the memory's clock */
    double asks;               /* bytes a cycle */
    int64_t executor;
} pto_sim_flow;

typedef struct pto_sim_memory {
    double bytes_per_cycle;
    pto_sim_flow *flows;       /* a heap by (end, executor) */
    int64_t n, capacity;
    double clock;              /* how far tasks that ask have come, at since */
    double factor;             /* by which they are slowed down, >= 1 */
    int64_t since;
    bool is_stale;             /* the factor */
} pto_sim_memory;

void pto_sim_memory_init(pto_sim_memory *memory, double bytes_per_cycle);
void pto_sim_memory_close(pto_sim_memory *memory);
bool pto_sim_memory_begin(pto_sim_memory *memory, int64_t now, int64_t executor, int64_t cost, int64_t bytes);     /* false: no memory */
int64_t pto_sim_memory_next(pto_sim_memory *memory);       /* when the next task ends, -1: none runs */
int64_t pto_sim_memory_end(pto_sim_memory *memory, int64_t now);       /* it ends now: returns its executor */

static inline bool pto_sim_memory_is_due(pto_sim_memory *memory, int64_t now)
{
    return memory->n > 0 && pto_sim_memory_next(memory) <= now;
}

#pragma GCC visibility pop

#endif
