/* sim_trace.h: with keep_trace, what happened to each task: times, executor, what held it. Without, all columns are NULL.

   Ownership: pto_sim owns the trace, the trace owns its columns; a result borrows them. Each part writes the columns that stand under its
   name. Units: times in cycles; tasks, nodes and executors by number, -1: none. */
#ifndef PTO_SIM_TRACE_H
#define PTO_SIM_TRACE_H
#include <stdbool.h>
#include <stdint.h>

#include "pto_wsp.h"

#pragma GCC visibility push(hidden)

typedef struct pto_sim_trace {
    bool is_kept;
    bool keeps_complete;       /* a task completes later than it ends, because retiring it takes time */
    int64_t capacity;          /* rows */
    /* front: when the stream submitted the task, and why it had not submitted it earlier: PTO_HELD_NOT, _WINDOW, _MARK or _SUBMIT */
    int64_t *submit;
    uint8_t *front_why;
    int64_t *front_by;         /* as pto_sim_result.held_by, by front_why */
    int64_t *released;         /* release */
    /* executors. held_by is the source of the last edge until the task is dispatched */
    int64_t *ready, *start, *end, *complete, *executor, *held_by;
    uint8_t *held;
    pto_sim_hop *hops;         /* executors, of tasks on several links */
    int64_t n_hops, hops_capacity;
} pto_sim_trace;

bool pto_sim_trace_add(pto_sim_trace *trace, int64_t task);    /* a row for the next task; false: no memory */
void pto_sim_trace_read(const pto_sim_trace *trace, pto_sim_result *out);
void pto_sim_trace_close(pto_sim_trace *trace);

#pragma GCC visibility pop

#endif
