/* sim_trace.c: the trace of a simulation, see sim_trace.h. */
#include "sim_trace.h"

#include "../collections/array.h"

#define TRACE_COLUMNS(of) \
    of(submit) of(front_why) of(front_by) of(released) of(ready) of(start) of(end) of(executor) of(held_by) of(held)
#define GROW(column) && (grown = trace->capacity, PTO_RESERVE(trace->column, grown, need))
#define FREE(column) free(trace->column);

bool pto_sim_trace_add(pto_sim_trace *trace, int64_t task)
{
    int64_t need = task + 1, grown;
    if (need > trace->capacity) {
        if (!(true TRACE_COLUMNS(GROW)) || (trace->keeps_complete && !(true GROW(complete))))
            return false;
        trace->capacity = grown;
    }
    trace->executor[task] = trace->held_by[task] = -1;
    trace->start[task] = trace->end[task] = -1;
    trace->held[task] = PTO_HELD_NOT;
    return true;
}

void pto_sim_trace_read(const pto_sim_trace *trace, pto_sim_result *out)
{
    out->start = trace->start;
    out->end = trace->end;
    out->complete = trace->keeps_complete ? trace->complete : trace->end;
    out->ready = trace->ready;
    out->submit = trace->submit;
    out->executor = trace->executor;
    out->held = trace->held;
    out->held_by = trace->held_by;
    out->hops = trace->hops;
    out->n_hops = trace->n_hops;
}

void pto_sim_trace_close(pto_sim_trace *trace)
{
    TRACE_COLUMNS(FREE)
    FREE(complete)
    FREE(hops)
}
