/* sim.c: replay a stream of nodes in virtual time: feeding, results, life.

   The simulator is an event clock (sim_clock.h), the nodes in flight (sim_nodes.h), a trace (sim_trace.h) and four parts, each of which
   knows only those that stand before it:

       front      streams: windows, marks, the time that submitting takes         sim_front.h
       pools      pools of executors and the queues of ready tasks                sim_ready.h, sim_pools.h, sim_calendar.h
       release    when a submitted task may run, and when executors start         sim_release.h, above front and pools
       executors  running tasks, their memory, workers that dispatch and retire   sim_executors.h, sim_memory.h, sim_service.h, above pools

   sim_step.h owns the parts and takes nodes from one to the next.

   Time goes on only when all open streams are held (by a full window or a mark), because what has not been fed yet may still be
   submitted at this time. So how a record is cut into feeds cannot change the result, with one exception: critical_path counts an edge only
   when its source is among the last max(2^20, nodes of the longest feed) nodes, and when the record has not forgotten it: an edge to a task
   that had completed long before changes no times, but may be part of the longest chain. */
#include "sim.h"

#include "../engine/interrupt.h"
#include "sim_calendar.h"
#include "sim_options.h"
#include "sim_step.h"

enum { NONE = -1 };

/* ---- feeding ---- */

/* Go on in time while the stream is held and no other can submit: its next node is known to come. */
static bool wait_for_stream(pto_sim *s, const pto_sim_stream *f)
{
    while (f->hold != PTO_SIM_FREE && s->front.n_open_held == s->front.n_open)
        if (!pto_sim_advance(s))
            return false;
    return true;
}

/* As above for a task, which needs room as well. A window may hold the stream again as soon as another has let it go. */
static bool wait_for_room(pto_sim *s, pto_sim_stream *f, const int64_t *needs)
{
    while (wait_for_stream(s, f)) {
        if (f->hold != PTO_SIM_FREE || !pto_sim_front_must_wait(&s->front, f, needs))
            return true;
        pto_sim_front_hold_by_window(&s->front, f, needs);
    }
    return false;
}

static bool feed_task(pto_sim *s, const pto_columns *c, int64_t task, const int64_t *src, int64_t n_src)
{
    pto_sim_stream *f = pto_sim_front_stream(&s->front, c->task_stream[task]);
    int64_t needs[PTO_N_WINDOWS] = {0}, cost = c->task_cost[task];
    bool is_weighed = s->nodes.keeps_weights;
    if (is_weighed)
        pto_sim_front_weigh(&s->front, c, task, n_src, needs);
    if (f == NULL || !wait_for_room(s, f, is_weighed ? needs : NULL))
        return false;
    pto_sim_fed fed = {.task = s->n_tasks, .cost = cost, .stream = c->task_stream[task], .src = src, .n_src = n_src, .chain = f->chain,
                       .worker = s->nodes.keeps_places ? (int32_t)c->task_worker[task] : NONE};
    if ((s->trace.is_kept && !pto_sim_trace_add(&s->trace, s->n_tasks)) || !pto_sim_enter(&s->nodes, &fed))
        return pto_sim_fail(&s->clock);
    int64_t node = s->nodes.next - 1;
    pto_sim_pools_enter(&s->pools, node, c, task);
    if (s->options.hop_cycles > 0 && !pto_sim_send_old_edges(s, node, src, n_src))
        return false;
    if (is_weighed)
        memcpy(pto_sim_front_weights(&s->front, node), needs, sizeof needs);
    s->n_tasks++;
    if (!pto_sim_count(&s->clock, &s->work, cost, s->n_tasks - 1))
        return false;
    pto_sim_front_append(&s->front, f, node);
    return f->hold != PTO_SIM_FREE || pto_sim_submit_task(s, f, node);
}

static bool feed_mark(pto_sim *s, const pto_columns *c, int64_t mark, const int64_t *src, int64_t n_src, const uint16_t *why)
{
    pto_sim_stream *f = pto_sim_front_stream(&s->front, c->mark_stream[mark]);
    if (c->mark_stall[mark] == PTO_STALL_READ)     /* but for the read, it would not stand behind its own statements either */
        why = NULL;
    if (f == NULL || !wait_for_stream(s, f))
        return false;
    pto_sim_fed fed = {.task = NONE, .cost = c->mark_delay[mark], .stream = c->mark_stream[mark], .src = src, .n_src = n_src, .why = why,
                       .chain = f->chain, .worker = NONE};
    if (!pto_sim_enter(&s->nodes, &fed))
        return pto_sim_fail(&s->clock);
    int64_t node = s->nodes.next - 1;
    pto_sim_node *n = pto_sim_at(&s->nodes, node);
    n->flags = c->mark_flags[mark];
    n->stall = c->mark_stall[mark];
    if (n->flags & PTO_MARK_BLOCKS)
        f->chain = pto_sim_chain_of(&s->nodes, node);
    pto_sim_front_append(&s->front, f, node);
    if (!pto_sim_submit(s, f) || !pto_sim_submit_all(s))
        return false;
    if (c->mark_flags[mark] & PTO_MARK_RESTS)
        pto_sim_front_rest(&s->front, f);
    return true;
}

static bool feed_join(pto_sim *s, const int64_t *src, int64_t n_src)
{
    pto_sim_fed fed = {.task = NONE, .stream = NONE, .src = src, .n_src = n_src, .worker = NONE};
    if (!pto_sim_enter(&s->nodes, &fed))
        return pto_sim_fail(&s->clock);
    if (pto_sim_at(&s->nodes, s->nodes.next - 1)->n_pending == 0)
        pto_sim_complete(s, s->nodes.next - 1);
    return true;
}

static bool has_arguments(const pto_columns *c)
{
    return c->arg_begin != NULL && (c->args != NULL || c->arg_begin[c->n_tasks] == c->arg_begin[0]);
}

/* Invariant of the loop: all nodes before `i` are in flight or have completed, and no time has passed that node `i` could have used. */
static int32_t feed(pto_sim *s, const pto_columns *columns)
{
    pto_columns c = *columns;
    if (s->clock.status != PTO_OK)
        return s->clock.status;
    if (s->is_finished || c.first_node != s->nodes.next || c.first_task != s->n_tasks)
        return PTO_E_ARGUMENT;
    bool weighs_arguments = s->front.windows[PTO_WINDOW_BYTES].size > 0 || s->front.windows[PTO_WINDOW_ENTRIES].size > 0;
    weighs_arguments |= s->options.window_unit == PTO_WINDOW_BYTES || s->options.window_unit == PTO_WINDOW_ENTRIES;
    if (weighs_arguments && c.n_tasks > 0 && !has_arguments(&c))
        return PTO_E_ARGUMENT;
    int32_t accepted = pto_sim_pools_accept(&s->pools, &c);
    if (accepted == PTO_OK && s->options.is_calendar && c.n_tasks > 0)
        accepted = pto_sim_calendar_keep(&s->pools, &c);
    if (accepted != PTO_OK)
        return accepted;
    while (s->nodes.chain_limit < c.n_nodes)
        s->nodes.chain_limit *= 2;
    int64_t mark = 0;
    for (int64_t i = 0; i < c.n_nodes; i++) {
        const int64_t *src = c.edge_src + c.pred_begin[i];
        int64_t n_src = c.pred_begin[i + 1] - c.pred_begin[i];
        if (pto_sim_clock_cancelled(&s->clock))
            return s->clock.status;
        bool fed = c.node_kind[i] == PTO_NODE_TASK   ? feed_task(s, &c, c.node_task[i], src, n_src)
                   : c.node_kind[i] == PTO_NODE_MARK ? feed_mark(s, &c, mark++, src, n_src, c.edge_why + c.pred_begin[i])
                                                     : feed_join(s, src, n_src);
        if (!fed)
            return s->clock.status != PTO_OK ? s->clock.status : (s->clock.status = PTO_E_DEADLOCK);
    }
    return s->clock.status;
}

/* ---- entry ---- */

int32_t pto_sim_feed_columns(pto_sim *s, const pto_columns *columns)
{
    bool interruptible = s->options.interruptible && pto_interrupt_open(NULL, &s->clock.own_cancel);
    int32_t status = feed(s, columns);
    if (interruptible)
        pto_interrupt_close(status);
    return status;
}

int32_t pto_sim_feed(pto_sim *s, const pto_record *record)
{
    pto_columns c;
    pto_record_columns(record, &c);
    return pto_sim_feed_columns(s, &c);
}

void pto_sim_watch(pto_sim *s, const volatile int32_t *cancel)
{
    s->clock.cancel = cancel != NULL ? cancel : &s->clock.own_cancel;
}

int64_t pto_sim_completed(const pto_sim *s)
{
    return s->nodes.first;
}

int32_t pto_sim_finish(pto_sim *s, pto_sim_result *out)
{
    bool interruptible = s->options.interruptible && pto_interrupt_open(NULL, &s->clock.own_cancel);
    while (s->clock.status == PTO_OK && pto_sim_advance(s))
        ;
    if (interruptible)
        pto_interrupt_close(s->clock.status);
    if (s->clock.status == PTO_OK && s->nodes.first < s->nodes.next)
        s->clock.status = PTO_E_DEADLOCK;
    s->is_finished = true;
    *out = (pto_sim_result){.total_cycles = s->last_completion, .n_tasks = s->n_tasks, .failed_task = s->clock.failed_task,
                            .critical_path = s->nodes.critical_path, .work = s->work, .failed_window = s->front.failed_window,
                            .failed_need = s->front.failed_need};
    const pto_window_use *use = &s->front.use[s->options.window_unit];
    out->window_stalls = use->stalls;
    out->window_stall_cycles = use->stall_cycles;
    out->window_high_water = use->high_water;
    memcpy(out->windows, s->front.use, sizeof out->windows);
    if (!pto_sim_pools_read(&s->pools, s->n_tasks, out))
        return s->clock.status;
    out->memory_cycles = s->executors.memory_cycles;
    memcpy(out->stalls, s->front.stalls, sizeof s->front.stalls);
    memcpy(out->stall_cycles, s->front.stall_cycles, sizeof s->front.stall_cycles);
    if (s->trace.is_kept)
        pto_sim_trace_read(&s->trace, out);
    return s->clock.status;
}

/* ---- life ---- */

pto_sim *pto_sim_new(const pto_sim_options *options)
{
    if (!pto_sim_options_fit(options))
        return NULL;
    pto_sim *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->options = *options;
    s->is_plain = pto_sim_is_plain(options);
    s->to_complete = NONE;
    s->clock.failed_task = NONE;
    pto_sim_watch(s, NULL);
    pto_sim_nodes_init(&s->nodes, options->window_unit != PTO_WINDOW_TASKS || options->n_more > 0);
    s->nodes.keeps_places = options->hop_cycles > 0;
    s->nodes.hop_cycles = options->hop_cycles;
    s->nodes.grid_columns = options->grid_columns;
    s->nodes.keeps_routes = options->route != PTO_ROUTE_NONE;
    s->trace.is_kept = options->keep_trace;
    pto_sim_front_init(&s->front, &s->options, &s->clock, &s->nodes, &s->trace);
    bool has_memory = pto_sim_pools_init(&s->pools, &s->options, &s->front);
    has_memory &= pto_sim_executors_init(&s->executors, &s->options, &s->pools);
    pto_sim_release_init(&s->release, &s->options, &s->front, &s->pools);
    pto_sim_service_init(&s->service, &s->executors);
    s->trace.keeps_complete = s->pools.has_service;
    s->options.pool_size = s->options.starts = NULL;       /* were borrowed */
    s->options.more = NULL;
    if (!has_memory) {
        pto_sim_free(s);
        return NULL;
    }
    return s;
}

void pto_sim_free(pto_sim *s)
{
    if (s == NULL)
        return;
    pto_sim_service_close(&s->service);
    pto_sim_executors_close(&s->executors);
    pto_sim_release_close(&s->release);
    pto_sim_pools_close(&s->pools);
    pto_sim_front_close(&s->front);
    pto_sim_trace_close(&s->trace);
    pto_sim_nodes_close(&s->nodes);
    pto_sim_clock_close(&s->clock);
    free(s);
}
