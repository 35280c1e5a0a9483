/* sim_front.c: the streams of a simulation, see sim_front.h. */
#include "sim_front.h"

enum { NONE = -1 };

static const int64_t of_task[PTO_N_WINDOWS] = {[PTO_WINDOW_TASKS] = 1};        /* what a task takes where tasks alone are counted */

void pto_sim_front_init(pto_sim_front *front, const pto_sim_options *options, pto_sim_clock *clock, pto_sim_nodes *nodes,
                        pto_sim_trace *trace)
{
    *front = (pto_sim_front){.options = options, .clock = clock, .nodes = nodes, .trace = trace, .failed_window = NONE};
    for (int32_t i = -1; i < options->n_more; i++) {
        const pto_window *w = i < 0 ? &(pto_window){options->window, options->window_unit, options->window_mode} : &options->more[i];
        front->windows[w->unit] = *w;
    }
    for (int32_t unit = 0; unit < PTO_N_WINDOWS; unit++) {
        const pto_window *w = &front->windows[unit];
        front->limit[unit] = w->size > 0 && w->mode != PTO_WINDOW_BENCHMARK ? w->size : INT64_MAX;
        if (w->size > 0 || unit == options->window_unit)
            front->kept[front->n_kept++] = unit;
    }
    front->counts_ready = front->kept[front->n_kept - 1] == PTO_WINDOW_READY;
}

void pto_sim_front_close(pto_sim_front *front)
{
    free(front->streams);
    free(front->to_submit);
    free(front->to_count);
}

pto_sim_stream *pto_sim_front_open(pto_sim_front *front, int32_t stream)
{
    if (stream >= front->n_streams) {
        if (!PTO_RESERVE(front->streams, front->streams_capacity, (int64_t)stream + 1) ||
            !PTO_RESERVE(front->to_submit, front->to_submit_capacity, (int64_t)stream + 1) ||
            !PTO_RESERVE(front->to_count, front->to_count_capacity, (int64_t)stream + 1)) {
            pto_sim_fail(front->clock);
            return NULL;
        }
        for (; front->n_streams <= stream; front->n_streams++)
            front->streams[front->n_streams] =
                (pto_sim_stream){.first = NONE, .next = NONE, .last = NONE, .mark = NONE, .held_by = NONE,
                                 .needs = {[PTO_WINDOW_TASKS] = 1}};
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

/* The unit of the first window that a task finds no room in, NONE: there is room; is_last: of those only that end the simulation then. */
static inline int32_t full_window(const pto_sim_front *front, const pto_sim_stream *f, const int64_t *needs, bool is_last)
{
    if (__builtin_expect(!front->nodes->keeps_weights, 1)) {     /* tasks alone are counted, and each is one */
        bool is_full = f->occupied[PTO_WINDOW_TASKS] >= front->limit[PTO_WINDOW_TASKS];
        return is_full && (!is_last || front->windows[PTO_WINDOW_TASKS].mode == PTO_WINDOW_ABORT) ? PTO_WINDOW_TASKS : NONE;
    }
    for (int32_t i = 0; i < front->n_kept; i++) {
        int32_t unit = front->kept[i];
        bool is_full = needs[unit] > 0 && needs[unit] > front->limit[unit] - f->occupied[unit];
        if (is_full && (!is_last || front->windows[unit].mode == PTO_WINDOW_ABORT || needs[unit] > front->limit[unit]))
            return unit;
    }
    return NONE;
}

bool pto_sim_front_must_wait_by_rules(const pto_sim_front *front, const pto_sim_stream *f, const int64_t *needs)
{
    return full_window(front, f, needs, false) != NONE;
}

static void note_overflow(pto_sim_front *front, pto_sim_stream *f, bool overflows)
{
    front->n_overflows += (int64_t)overflows - (int64_t)f->overflows;
    f->overflows = overflows;
}

void pto_sim_front_hold_by_window(pto_sim_front *front, pto_sim_stream *f, const int64_t *needs)
{
    if (needs != NULL)
        memcpy(f->needs, needs, sizeof f->needs);
    f->window = full_window(front, f, f->needs, false);
    note_overflow(front, f, full_window(front, f, f->needs, true) != NONE);
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
    front->has_let_go = true;
    front->n_open_held -= f->is_open;
    if (f->next != NONE && !f->is_listed) {
        f->is_listed = true;
        front->to_submit[front->n_to_submit++] = (int32_t)(f - front->streams);
    }
}

static uint8_t held_by_window(int32_t unit)
{
    static const uint8_t held[PTO_N_WINDOWS] = {PTO_HELD_WINDOW, PTO_HELD_BYTES, PTO_HELD_ENTRIES, PTO_HELD_EDGES, PTO_HELD_READY};
    return held[unit];
}

/* Look again at what a stream waits for that a window holds, after a task has made room: another window may hold it from here on. */
static void look_again(pto_sim_front *front, pto_sim_stream *f, int64_t task)
{
    int32_t unit = full_window(front, f, f->needs, false), before = f->window;
    int64_t now = front->clock->now, cycles = now - f->since;
    note_overflow(front, f, full_window(front, f, f->needs, true) != NONE);
    if (unit == before)
        return;
    if (cycles > 0) {
        front->use[before].stalls++;
        pto_sim_count(front->clock, &front->use[before].stall_cycles, cycles, NONE);
    }
    if (unit == NONE) {
        let_go(front, f, held_by_window(before), task);
        return;
    }
    if (cycles > 0) {
        f->why = held_by_window(before);
        f->held_by = task;
    }
    f->since = now;
    f->window = unit;
}

/* Invariant of the loop: `occupied` is what tasks take from `first` up to `next`, and all before `first` have completed. */
void pto_sim_front_free_room(pto_sim_front *front, pto_sim_stream *f)
{
    int64_t by = f->first;
    while (f->first != NONE && f->first != f->next) {
        const pto_sim_node *n = pto_sim_at(front->nodes, f->first);
        const int64_t *weights = pto_sim_front_weights(front, f->first);
        if (n->task >= 0 && n->state != PTO_SIM_DONE)
            break;
        if (weights == NULL)
            f->occupied[PTO_WINDOW_TASKS] -= n->task >= 0;
        for (int32_t i = 0; weights != NULL && n->task >= 0 && i < front->n_kept; i++)
            if (front->kept[i] != PTO_WINDOW_READY)        /* that room is free since an executor took the task */
                f->occupied[front->kept[i]] -= weights[front->kept[i]];
        f->first = n->follower;
    }
    if (f->hold == PTO_SIM_BY_WINDOW)
        look_again(front, f, pto_sim_at(front->nodes, by)->task);
}

static void count_soon(pto_sim_front *front, pto_sim_stream *f)
{
    if (f->is_to_count)
        return;
    f->is_to_count = true;
    front->to_count[front->n_to_count++] = (int32_t)(f - front->streams);
}

void pto_sim_front_ready(pto_sim_front *front, int64_t node, bool is_taken)
{
    const pto_sim_node *n = pto_sim_at(front->nodes, node);
    pto_sim_stream *f = &front->streams[n->stream];
    pto_window_use *use = &front->use[PTO_WINDOW_READY];
    f->n_ready += is_taken ? -1 : 1;
    f->last_taken = is_taken ? n->task : f->last_taken;
    if (f->n_ready > use->high_water)
        use->high_water = f->n_ready;
    count_soon(front, f);
}

void pto_sim_front_count_ready_of_streams(pto_sim_front *front)
{
    for (int64_t i = 0; i < front->n_to_count; i++) {
        pto_sim_stream *f = &front->streams[front->to_count[i]];
        f->is_to_count = false;
        f->occupied[PTO_WINDOW_READY] = f->n_ready;
        if (f->hold == PTO_SIM_BY_WINDOW)
            look_again(front, f, f->last_taken);
    }
    front->n_to_count = 0;
}

bool pto_sim_front_overflow(pto_sim_front *front, int64_t n_tasks)
{
    int64_t task = INT64_MAX;
    for (int64_t i = 0; i < front->n_streams; i++) {
        const pto_sim_stream *f = &front->streams[i];
        if (f->hold != PTO_SIM_BY_WINDOW || !f->overflows)
            continue;
        int64_t held = f->next != NONE ? pto_sim_at(front->nodes, f->next)->task : n_tasks;    /* or it is being fed */
        if (held >= task)
            continue;
        task = held;
        front->failed_window = full_window(front, f, f->needs, true);
        front->failed_need = f->needs[front->failed_window];
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

static int64_t bytes_kept(const pto_arg *args, int64_t n)
{
    int64_t sum = 0;
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

void pto_sim_front_weigh(const pto_sim_front *front, const pto_columns *c, int64_t task, int64_t n_src, int64_t *needs)
{
    int64_t n = c->arg_begin == NULL ? 0 : c->arg_begin[task + 1] - c->arg_begin[task];
    for (int32_t i = 0; i < front->n_kept; i++)
        switch (front->kept[i]) {
        case PTO_WINDOW_BYTES: needs[PTO_WINDOW_BYTES] = n == 0 ? 0 : bytes_kept(c->args + c->arg_begin[task], n); break;
        case PTO_WINDOW_ENTRIES: needs[PTO_WINDOW_ENTRIES] = n; break;
        case PTO_WINDOW_EDGES: needs[PTO_WINDOW_EDGES] = n_src; break;
        default: needs[front->kept[i]] = 1; break;
        }
}

bool pto_sim_front_take_room(pto_sim_front *front, pto_sim_stream *f, int64_t node)
{
    const int64_t *weights = pto_sim_front_weights(front, node);
    for (int32_t i = 0; i < front->n_kept; i++) {
        int32_t unit = front->kept[i];
        const pto_window *w = &front->windows[unit];
        pto_window_use *use = &front->use[unit];
        int64_t weight = (weights != NULL ? weights : of_task)[unit];
        if (w->mode == PTO_WINDOW_BENCHMARK && w->size > 0 && weight > 0)
            use->stalls += weight > w->size - f->occupied[unit];
        if (unit == PTO_WINDOW_READY) {
            f->occupied[unit]++;
            count_soon(front, f);
            continue;
        }
        if (__builtin_add_overflow(f->occupied[unit], weight, &f->occupied[unit]))
            return pto_sim_fail_at(front->clock, PTO_E_ARGUMENT, pto_sim_at(front->nodes, node)->task);
        if (f->occupied[unit] > use->high_water)
            use->high_water = f->occupied[unit];
    }
    return true;
}
