/* sim_front.c: the streams of a simulation, see sim_front.h. */
#include "sim_front.h"

enum { NONE = -1 };

void pto_sim_front_init(pto_sim_front *front, const pto_sim_options *options, pto_sim_clock *clock, pto_sim_nodes *nodes,
                        pto_sim_trace *trace)
{
    bool waits = options->window > 0 && options->window_mode != PTO_WINDOW_BENCHMARK;
    *front = (pto_sim_front){.options = options, .clock = clock, .nodes = nodes, .trace = trace,
                             .window_limit = waits ? options->window : INT64_MAX};
}

void pto_sim_front_close(pto_sim_front *front)
{
    free(front->streams);
    free(front->to_submit);
}

pto_sim_stream *pto_sim_front_open(pto_sim_front *front, int32_t stream)
{
    if (stream >= front->n_streams) {
        if (!PTO_RESERVE(front->streams, front->streams_capacity, (int64_t)stream + 1) ||
            !PTO_RESERVE(front->to_submit, front->to_submit_capacity, (int64_t)stream + 1)) {
            pto_sim_fail(front->clock);
            return NULL;
        }
        for (; front->n_streams <= stream; front->n_streams++)
            front->streams[front->n_streams] =
                (pto_sim_stream){.first = NONE, .next = NONE, .last = NONE, .mark = NONE, .held_by = NONE};
    }
    pto_sim_stream *f = &front->streams[stream];
    if (f->hold == PTO_SIM_FREE) {     /* while it rested, nothing held it */
        f->why = PTO_HELD_NOT;
        f->held_by = NONE;
    }
    f->is_open = true;
    front->n_open++;
    front->n_open_held += f->hold != PTO_SIM_FREE;
    return f;
}

void pto_sim_front_rest(pto_sim_front *front, pto_sim_stream *f)
{
    f->is_open = false;
    front->n_open--;
    front->n_open_held -= f->hold != PTO_SIM_FREE;
}

/* ---- holding ---- */

void pto_sim_front_hold(pto_sim_front *front, pto_sim_stream *f, pto_sim_holder by)
{
    f->hold = by;
    f->since = front->clock->now;
    front->n_open_held += f->is_open;
}

/* Is the stream held by a window that it may not wait for, or waits for in vain? */
static bool ends_simulation(const pto_sim_front *front, const pto_sim_stream *f)
{
    return front->options->window_mode == PTO_WINDOW_ABORT || f->needs > front->options->window;
}

void pto_sim_front_hold_by_window(pto_sim_front *front, pto_sim_stream *f, int64_t weight)
{
    f->needs = weight;
    front->n_overflows += ends_simulation(front, f);
    pto_sim_front_hold(front, f, PTO_SIM_BY_WINDOW);
}

bool pto_sim_front_hold_by_submission(pto_sim_front *front, pto_sim_stream *f)
{
    pto_sim_front_hold(front, f, PTO_SIM_BY_SUBMIT);
    return pto_sim_clock_add(front->clock, PTO_SIM_SUBMISSION_ENDS, pto_sim_add(front->clock->now, front->options->submit_cycles),
                             f - front->streams);
}

/* by: what the stream waited for last, as pto_sim_result.held_by */
static void let_go(pto_sim_front *front, pto_sim_stream *f, uint8_t why, int64_t by)
{
    if (front->clock->now > f->since) {
        f->why = why;
        f->held_by = by;
    }
    f->hold = PTO_SIM_FREE;
    front->n_open_held -= f->is_open;
    if (f->next != NONE && !f->is_listed) {
        f->is_listed = true;
        front->to_submit[front->n_to_submit++] = (int32_t)(f - front->streams);
    }
}

/* Invariant of the loop: `occupied` is what tasks take from `first` up to `next`, and all before `first` have completed. */
void pto_sim_front_free_room(pto_sim_front *front, pto_sim_stream *f)
{
    int64_t by = f->first, now = front->clock->now;
    while (f->first != NONE && f->first != f->next) {
        const pto_sim_node *n = pto_sim_at(front->nodes, f->first);
        if (n->task >= 0 && n->state != PTO_SIM_DONE)
            break;
        f->occupied -= n->task >= 0 ? pto_sim_front_weight(front, f->first) : 0;
        f->first = n->follower;
    }
    if (f->hold == PTO_SIM_BY_WINDOW && !pto_sim_front_must_wait(front, f, f->needs)) {
        if (now > f->since) {
            front->window_stalls++;
            pto_sim_count(front->clock, &front->window_stall_cycles, now - f->since, NONE);
        }
        front->n_overflows -= ends_simulation(front, f);
        let_go(front, f, PTO_HELD_WINDOW, pto_sim_at(front->nodes, by)->task);
    }
}

bool pto_sim_front_overflow(pto_sim_front *front, int64_t n_tasks)
{
    int64_t task = INT64_MAX;
    for (int64_t i = 0; i < front->n_streams; i++) {
        const pto_sim_stream *f = &front->streams[i];
        if (f->hold != PTO_SIM_BY_WINDOW || !ends_simulation(front, f))
            continue;
        int64_t held = f->next != NONE ? pto_sim_at(front->nodes, f->next)->task : n_tasks;    /* or it is being fed */
        task = held < task ? held : task;
    }
    return pto_sim_fail_at(front->clock, PTO_E_WINDOW, task);
}

void pto_sim_front_wake(pto_sim_front *front)
{
    while (pto_sim_clock_is_due(front->clock, PTO_SIM_SUBMISSION_ENDS))
        let_go(front, &front->streams[pto_sim_clock_take(front->clock, PTO_SIM_SUBMISSION_ENDS)], PTO_HELD_SUBMIT, NONE);
}

static void count_stall(pto_sim_front *front, uint8_t stall, int64_t cycles)
{
    front->stalls[stall] += cycles > 0;
    pto_sim_count(front->clock, &front->stall_cycles[stall], cycles, NONE);
}

void pto_sim_front_pass_mark(pto_sim_front *front, pto_sim_stream *f, int64_t node)
{
    if (f->hold != PTO_SIM_BY_MARK || f->mark != node)
        return;
    const pto_sim_node *n = pto_sim_at(front->nodes, node);
    int64_t since = n->ready > f->since ? n->ready : f->since;     /* before that the mark stood behind its own statements */
    count_stall(front, PTO_STALL_NONE, since - f->since);
    count_stall(front, n->stall, front->clock->now - since);
    let_go(front, f, PTO_HELD_MARK, node);
}

/* ---- room ---- */

int64_t pto_sim_front_weigh(const pto_sim_front *front, const pto_columns *c, int64_t task)
{
    int64_t n = c->arg_begin[task + 1] - c->arg_begin[task], sum = 0;
    if (front->options->window_unit == PTO_WINDOW_ENTRIES || n == 0)
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
