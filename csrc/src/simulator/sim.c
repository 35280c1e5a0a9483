/* sim.c: replay a stream of nodes in virtual time: feeding, results, life. See sim.h for the rules.

   One exception to "how a record is cut into feeds changes nothing": critical_path counts an edge only when its source is
   among the last max(2^20, nodes of the longest feed) nodes, and when the record has not forgotten it: an edge to a task that
   had completed long before changes no times, but may be part of the longest chain. */
#include "sim.h"

#define PTO_MIN_CHAINS ((int64_t)1 << 20)

static bool reserve_chain(pto_sim *s)
{
    int64_t node = s->ring.next;
    if (node - s->chain_first < s->chain_capacity)
        return true;
    if (s->chain_capacity >= s->chain_limit) {
        s->chain_first = node + 1 - s->chain_capacity;     /* the oldest makes room */
        return true;
    }
    int64_t grown = s->chain_capacity == 0 ? 1024 : 2 * s->chain_capacity;
    int64_t *chain = malloc((size_t)grown * sizeof *chain);
    if (chain == NULL)
        return pto_sim_fail(s);
    for (int64_t i = s->chain_first; i < node; i++)
        chain[i & (grown - 1)] = s->chain[i & (s->chain_capacity - 1)];
    free(s->chain);
    s->chain = chain;
    s->chain_capacity = grown;
    return true;
}

static bool make_room(pto_sim *s)
{
    return (pto_sim_ring_reserve(&s->ring) || pto_sim_fail(s)) &&
           (s->options.window_unit == PTO_WINDOW_TASKS || pto_sim_reserve_weights(s));
}

static bool add_link(pto_sim *s, int64_t src, int64_t dst, bool is_order)
{
    int32_t at = s->links_free;
    if (at >= 0)
        s->links_free = s->links[at].next;
    else if (s->n_links >= INT32_MAX - 1 || !PTO_RESERVE(s->links, s->links_capacity, s->n_links + 1))
        return pto_sim_fail(s);
    else
        at = (int32_t)s->n_links++;
    s->links[at] = (pto_sim_link){dst, -1, is_order};
    pto_sim_node *n = pto_sim_at(&s->ring, src);
    if (n->first_link < 0)
        n->first_link = at;
    else
        s->links[n->last_link].next = at;
    n->last_link = at;
    return true;
}

/* Enter a node of `stream` behind all others, with its predecessors src[0..n_src); why, for those of a mark. */
static inline bool enter(pto_sim *s, int64_t task, int64_t cost, int32_t stream, const int64_t *src, int64_t n_src, const uint16_t *why)
{
    if (s->ring.next - s->ring.first >= s->ring.capacity && !make_room(s))
        return false;
    if (!reserve_chain(s))
        return false;
    int64_t node = s->ring.next++, longest = stream < 0 ? 0 : s->fronts[stream].chain;
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    *n = (pto_sim_node){.task = task, .cost = cost, .next = -1, .follower = -1, .first_link = -1, .last_link = -1,
                        .stream = stream};
    for (int64_t i = 0; i < n_src; i++) {
        if (src[i] >= s->chain_first && s->chain[src[i] & (s->chain_capacity - 1)] > longest)
            longest = s->chain[src[i] & (s->chain_capacity - 1)];
        if (src[i] < s->ring.first || pto_sim_at(&s->ring, src[i])->state == PTO_SIM_DONE)
            continue;
        bool is_order = why != NULL && why[i] == PTO_EDGE_ORDER;
        n->n_pending++;
        if (!add_link(s, src[i], node, is_order))
            return false;
    }
    longest = pto_sim_add(longest, cost);
    s->chain[node & (s->chain_capacity - 1)] = longest;
    if (longest > s->critical_path && task >= 0)
        s->critical_path = longest;
    return true;
}

static bool reserve_trace(pto_sim *s, int64_t n)
{
    if (n <= s->trace_capacity)
        return true;
    int64_t capacity = s->trace_capacity, grown = capacity;
#define PTO_GROW_COLUMN(column) (grown = capacity, PTO_RESERVE(s->column, grown, n))
    if (!PTO_GROW_COLUMN(start) || !PTO_GROW_COLUMN(end) || !PTO_GROW_COLUMN(ready) || !PTO_GROW_COLUMN(submit) ||
        !PTO_GROW_COLUMN(released) || !PTO_GROW_COLUMN(front_by) || !PTO_GROW_COLUMN(front_why) || !PTO_GROW_COLUMN(executor) ||
        !PTO_GROW_COLUMN(held_by) || !PTO_GROW_COLUMN(held) || (s->servers != NULL && !PTO_GROW_COLUMN(complete)))
        return pto_sim_fail(s);
#undef PTO_GROW_COLUMN
    s->trace_capacity = grown;
    return true;
}

/* ---- feeding ---- */

/* Go on in time while the stream is held and no other can submit: its next node is known to come. */
static bool wait_for_stream(pto_sim *s, const pto_sim_front *f)
{
    while (f->hold != PTO_SIM_FREE && s->n_open_held == s->n_open)
        if (!pto_sim_advance(s))
            return false;
    return true;
}

/* As above for a task, which needs room as well. */
static bool wait_for_room(pto_sim *s, pto_sim_front *f, int64_t weight)
{
    if (!wait_for_stream(s, f))
        return false;
    if (f->hold != PTO_SIM_FREE || !pto_sim_must_wait(s, f, weight))
        return true;
    pto_sim_hold_by_window(s, f, weight);
    return wait_for_stream(s, f);
}

static bool feed_task(pto_sim *s, const pto_columns *c, int64_t task, const int64_t *src, int64_t n_src)
{
    pto_sim_front *f = pto_sim_front_of(s, c->task_stream[task]);
    int64_t weight = s->options.window_unit == PTO_WINDOW_TASKS ? 1 : pto_sim_weigh(s, c, task);
    if (f == NULL || !wait_for_room(s, f, weight) || (s->options.keep_trace && !reserve_trace(s, s->n_tasks + 1)) ||
        !enter(s, s->n_tasks, c->task_cost[task], c->task_stream[task], src, n_src, NULL))
        return false;
    int64_t node = s->ring.next - 1;
    pto_sim_enter_task(s, node, c, task);
    if (s->weights != NULL)
        s->weights[node & (s->weights_capacity - 1)] = weight;
    if (s->options.keep_trace) {
        s->executor[s->n_tasks] = s->held_by[s->n_tasks] = -1;
        s->held[s->n_tasks] = PTO_HELD_NOT;
    }
    s->n_tasks++;
    if (!pto_sim_count(s, &s->work, c->task_cost[task], s->n_tasks - 1))
        return false;
    pto_sim_append(s, f, node);
    return f->hold != PTO_SIM_FREE || pto_sim_submit_task(s, f, node);
}

static bool feed_mark(pto_sim *s, const pto_columns *c, int64_t mark, const int64_t *src, int64_t n_src, const uint16_t *why)
{
    pto_sim_front *f = pto_sim_front_of(s, c->mark_stream[mark]);
    if (c->mark_stall[mark] == PTO_STALL_READ)     /* but for the read, it would not stand behind its own statements either */
        why = NULL;
    if (f == NULL || !wait_for_stream(s, f) || !enter(s, -1, c->mark_delay[mark], c->mark_stream[mark], src, n_src, why))
        return false;
    int64_t node = s->ring.next - 1, chain = s->chain[node & (s->chain_capacity - 1)];
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->flags = c->mark_flags[mark];
    n->stall = c->mark_stall[mark];
    if (n->flags & PTO_MARK_BLOCKS)
        f->chain = chain;
    pto_sim_append(s, f, node);
    if (!pto_sim_submit(s, f) || !pto_sim_submit_all(s))
        return false;
    if (c->mark_flags[mark] & PTO_MARK_RESTS)
        pto_sim_rest(s, f);
    return true;
}

static bool feed_join(pto_sim *s, const int64_t *src, int64_t n_src)
{
    if (!enter(s, -1, 0, -1, src, n_src, NULL))
        return false;
    if (pto_sim_at(&s->ring, s->ring.next - 1)->n_pending == 0)
        pto_sim_complete(s, s->ring.next - 1);
    return true;
}

int32_t pto_sim_feed(pto_sim *s, const pto_record *record)
{
    pto_columns c;
    pto_record_columns(record, &c);
    return pto_sim_feed_columns(s, &c);
}

void pto_sim_watch(pto_sim *s, const volatile int32_t *cancel)
{
    s->cancel = cancel != NULL ? cancel : &s->own_cancel;
}

bool pto_sim_cancelled(pto_sim *s)
{
    if (__atomic_load_n(s->cancel, __ATOMIC_RELAXED) == 0)
        return false;
    if (s->status == PTO_OK)
        s->status = PTO_E_CANCELLED;
    return true;
}

static int32_t feed(pto_sim *s, const pto_columns *columns)
{
    pto_columns c = *columns;
    if (s->status != PTO_OK)
        return s->status;
    if (s->finished || c.first_node != s->ring.next || c.first_task != s->n_tasks)
        return PTO_E_ARGUMENT;
    if (s->options.window_unit != PTO_WINDOW_TASKS && c.n_tasks > 0 &&
        (c.arg_begin == NULL || (c.args == NULL && c.arg_begin[c.n_tasks] > c.arg_begin[0])))
        return PTO_E_ARGUMENT;
    int32_t accepted = pto_sim_accept(s, &c);
    if (accepted != PTO_OK)
        return accepted;
    while (s->chain_limit < c.n_nodes)
        s->chain_limit *= 2;
    int64_t mark = 0;
    for (int64_t i = 0; i < c.n_nodes; i++) {
        const int64_t *src = c.edge_src + c.pred_begin[i];
        int64_t n_src = c.pred_begin[i + 1] - c.pred_begin[i];
        if (pto_sim_cancelled(s))
            return s->status;
        bool fed = c.node_kind[i] == PTO_NODE_TASK   ? feed_task(s, &c, c.node_task[i], src, n_src)
                   : c.node_kind[i] == PTO_NODE_MARK ? feed_mark(s, &c, mark++, src, n_src, c.edge_why + c.pred_begin[i])
                                                     : feed_join(s, src, n_src);
        if (!fed)
            return s->status != PTO_OK ? s->status : (s->status = PTO_E_DEADLOCK);
    }
    return s->status;
}

int32_t pto_sim_feed_columns(pto_sim *s, const pto_columns *columns)
{
    bool interruptible = s->options.interruptible && pto_interrupt_open(NULL, &s->own_cancel);
    int32_t status = feed(s, columns);
    if (interruptible)
        pto_interrupt_close(status);
    return status;
}

int64_t pto_sim_completed(const pto_sim *s)
{
    return s->ring.first;
}

int32_t pto_sim_finish(pto_sim *s, pto_sim_result *out)
{
    bool interruptible = s->options.interruptible && pto_interrupt_open(NULL, &s->own_cancel);
    while (s->status == PTO_OK && pto_sim_advance(s))
        ;
    if (interruptible)
        pto_interrupt_close(s->status);
    if (s->status == PTO_OK && s->ring.first < s->ring.next)
        s->status = PTO_E_DEADLOCK;
    s->finished = true;
    *out = (pto_sim_result){.total_cycles = s->last_completion, .n_tasks = s->n_tasks, .failed_task = s->failed_task,
                            .critical_path = s->critical_path, .work = s->work, .window_stalls = s->window_stalls,
                            .window_stall_cycles = s->window_stall_cycles,
                            .window_high_water = s->window_high_water};
    if (!pto_sim_executor_figures(s, out))
        return s->status;
    out->memory_cycles = s->memory_cycles;
    memcpy(out->stalls, s->stalls, sizeof s->stalls);
    memcpy(out->stall_cycles, s->stall_cycles, sizeof s->stall_cycles);
    if (s->options.keep_trace) {
        out->start = s->start;
        out->end = s->end;
        out->complete = s->servers != NULL ? s->complete : s->end;
        out->ready = s->ready;
        out->submit = s->submit;
        out->executor = s->executor;
        out->held = s->held;
        out->held_by = s->held_by;
    }
    return s->status;
}

/* ---- life ---- */

/* Of what streams submit, and when it is released. */
static bool has_valid_rules(const pto_sim_options *o)
{
    bool has_rate = o->release_num > 0 && o->release_den > 0 && o->release_den <= INT64_MAX / 2;
    bool has_timing = o->timing == PTO_TIMING_IMMEDIATE || (o->timing == PTO_TIMING_RATE && has_rate) ||
                      ((o->timing == PTO_TIMING_BATCHED || o->timing == PTO_TIMING_INTERLEAVED) && o->timing_n > 0);
    bool has_workers = o->n_workers >= (o->is_calendar ? 0 : 1) && o->n_workers <= INT32_MAX;      /* a calendar may name them */
    return has_workers && has_timing && o->window >= 0 && o->window_unit >= PTO_WINDOW_TASKS &&
           o->window_unit <= PTO_WINDOW_ENTRIES && o->window_mode >= PTO_WINDOW_STALL && o->window_mode <= PTO_WINDOW_BENCHMARK &&
           o->start_after >= PTO_AFTER_ALL && o->submit_cycles >= 0;
}

pto_sim *pto_sim_new(const pto_sim_options *options)
{
    if (!has_valid_rules(options) || !pto_sim_options_fit(options))
        return NULL;
    pto_sim *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->options = *options;
    pto_sim_watch(s, NULL);
    s->links_free = -1;
    s->to_complete = -1;
    s->chain_limit = PTO_MIN_CHAINS;
    s->failed_task = s->backlog_first = -1;
    s->window_limit = options->window > 0 && options->window_mode != PTO_WINDOW_BENCHMARK ? options->window : INT64_MAX;
    s->is_started = options->start_after == 0;
    s->is_plain = (options->timing == PTO_TIMING_IMMEDIATE || options->timing == PTO_TIMING_INTERLEAVED) && s->is_started &&
                  options->window_unit == PTO_WINDOW_TASKS && options->window_mode != PTO_WINDOW_BENCHMARK &&
                  options->submit_cycles == 0 && !options->keep_trace;
    if (!pto_sim_keep_pool_sizes(s) || !pto_sim_keep_starts(s)) {
        pto_sim_free(s);
        return NULL;
    }
    return s;
}

void pto_sim_free(pto_sim *s)
{
    if (s == NULL)
        return;
    pto_sim_close(s);
    free(s->ring.nodes);
    free(s->ring.more);
    free(s->links);
    free(s->fronts);
    free(s->to_submit);
    free(s->weights);
    free(s->submitting.data);
    free(s->batches);
    free(s->backlog_late.data);
    free(s->running.data);
    free(s->delayed.data);
    free(s->to_dispatch);
    free(s->chain);
    free(s->start);
    free(s->end);
    free(s->complete);
    free(s->ready);
    free(s->submit);
    free(s->released);
    free(s->front_by);
    free(s->front_why);
    free(s->executor);
    free(s->held_by);
    free(s->held);
    free(s);
}
