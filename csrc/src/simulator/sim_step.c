/* sim_step.c: completing, submitting, going on in time, see sim_step.h. */
#include "sim_step.h"

enum { NONE = -1 };

/* ---- completing ---- */

static void complete_soon(pto_sim *s, int64_t node)
{
    pto_sim_at(&s->nodes, node)->next = s->to_complete;
    s->to_complete = node;
}

/* All that a mark waits for has completed: only its delay is left. */
static void begin_delay(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->nodes, node);
    n->state = PTO_SIM_READY;
    if (n->cost == 0)
        complete_soon(s, node);
    else
        pto_sim_clock_add(&s->clock, PTO_SIM_DELAY_ENDS, pto_sim_add(s->clock.now, n->cost), node);
}

/* A predecessor of the node, src, has completed. */
static void arrive(pto_sim *s, int64_t node, int64_t src, bool is_order)
{
    pto_sim_node *n = pto_sim_at(&s->nodes, node);
    if (is_order)
        n->ready = s->clock.now;
    if (--n->n_pending > 0)
        return;
    if (n->stream < 0) {
        complete_soon(s, node);
    } else if (n->state == PTO_SIM_WAITING && n->task < 0) {
        begin_delay(s, node);
    } else if (n->state == PTO_SIM_WAITING) {
        pto_sim_wait_no_more(&s->pools, &s->pools.queues[n->queue]);
        if (s->trace.is_kept)
            s->trace.held_by[n->task] = src;
        pto_sim_make_ready(s, node);
    }
}

/* ---- places ---- */

static int64_t worker_of(const pto_sim *s, int64_t node)
{
    return pto_sim_at(&s->nodes, node)->queue % s->pools.n_workers;
}

/* Send the end of src, which completed then, to a task on another worker, by a link that nobody has. */
static bool send_edge(pto_sim *s, int32_t link, int64_t node, int64_t src, int64_t at)
{
    s->nodes.links[link] = (pto_sim_link){.node = node, .next = (int32_t)(node - src)};
    return pto_sim_clock_add(&s->clock, PTO_SIM_EDGE_ARRIVES, at, link);
}

static void edge_arrives(pto_sim *s, int64_t at)
{
    pto_sim_link link = s->nodes.links[at];
    s->nodes.links[at].next = s->nodes.links_free;
    s->nodes.links_free = (int32_t)at;
    arrive(s, link.node, link.node - link.next, false);
}

bool pto_sim_send_old_edges(pto_sim *s, int64_t node, const int64_t *src, int64_t n_src)
{
    int64_t to = worker_of(s, node);
    for (int64_t i = 0; i < n_src; i++) {
        const pto_sim_place *place = src[i] < s->nodes.chain_first ? NULL : pto_sim_place_of(&s->nodes, src[i]);
        if (place == NULL || place->worker < 0 || place->completed < 0)
            continue;
        int64_t at = pto_sim_add(place->completed, pto_sim_between(&s->nodes, place->worker, to));
        if (at <= s->clock.now)
            continue;
        int32_t link = pto_sim_link_new(&s->nodes);
        pto_sim_at(&s->nodes, node)->n_pending++;
        if (link < 0 ? !pto_sim_fail(&s->clock) : !send_edge(s, link, node, src[i], at))
            return false;
    }
    return true;
}

/* Whether a link of a task that completes now takes time: then it is under way. */
static bool goes_far(pto_sim *s, int64_t node, int32_t at)
{
    pto_sim_link link = s->nodes.links[at];
    if (s->options.hop_cycles == 0 || pto_sim_at(&s->nodes, node)->task < 0 || pto_sim_at(&s->nodes, link.node)->task < 0)
        return false;
    int64_t cycles = pto_sim_between(&s->nodes, worker_of(s, node), worker_of(s, link.node));
    return cycles > 0 && (send_edge(s, at, link.node, node, pto_sim_add(s->clock.now, cycles)) || true);
}

/* Links of a node go back to the free list before its successor is told, which adds none. */
static void complete_node(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->nodes, node);
    n->state = PTO_SIM_DONE;
    if (s->options.hop_cycles > 0 && n->task >= 0)
        *pto_sim_place_of(&s->nodes, node) = (pto_sim_place){s->clock.now, (int32_t)worker_of(s, node)};
    for (int32_t at = n->first_link, next; at >= 0; at = next) {
        pto_sim_link link = s->nodes.links[at];
        next = link.next;
        if (goes_far(s, node, at))
            continue;
        s->nodes.links[at].next = s->nodes.links_free;
        s->nodes.links_free = at;
        arrive(s, link.node, node, link.is_order);
    }
    if (n->stream < 0)
        return;
    pto_sim_stream *f = &s->front.streams[n->stream];
    if (n->task < 0)
        pto_sim_front_pass_mark(&s->front, f, node);
    else if (f->first == node)
        pto_sim_front_free_room(&s->front, f);
}

/* Complete a node, and all joins and marks that this completes.
   Invariant of the first loop: every node in the list waits for nothing. Of the second: all nodes before nodes.first have completed. */
void pto_sim_complete(pto_sim *s, int64_t node)
{
    complete_node(s, node);
    while (s->to_complete >= 0) {
        int64_t at = s->to_complete;
        s->to_complete = pto_sim_at(&s->nodes, at)->next;
        complete_node(s, at);
    }
    while (s->nodes.first < s->nodes.next && pto_sim_at(&s->nodes, s->nodes.first)->state == PTO_SIM_DONE)
        s->nodes.first++;
}

/* ---- submitting ---- */

bool pto_sim_submit_by_rules(pto_sim *s, pto_sim_stream *f, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->nodes, node);
    int32_t stream = n->stream;
    f->next = n->follower;
    n->flags = s->release.delays ? 0 : PTO_SIM_RELEASED;
    if (s->trace.is_kept) {
        s->trace.submit[n->task] = s->trace.released[n->task] = s->clock.now;
        s->trace.front_why[n->task] = f->why;
        s->trace.front_by[n->task] = f->held_by;
    }
    pto_sim_release_count(&s->release);
    return pto_sim_front_take_room(&s->front, f, node) && pto_sim_task_submitted(s, node) && (!s->release.delays || pto_sim_release_delay(&s->release, stream, node)) &&
           (s->options.submit_cycles == 0 || pto_sim_front_hold_by_submission(&s->front, f));
}

static bool submit_mark(pto_sim *s, pto_sim_stream *f, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->nodes, node);
    f->next = n->follower;
    if (f->first == node)
        pto_sim_front_free_room(&s->front, f);
    if (n->flags & PTO_MARK_BLOCKS) {  /* held first, so that completing at once lets the stream go */
        f->mark = node;
        pto_sim_front_hold(&s->front, f, PTO_SIM_BY_MARK);
    }
    n->state = PTO_SIM_WAITING;
    if (n->n_pending > 0)
        return true;
    if (n->cost == 0)
        pto_sim_complete(s, node);
    else
        begin_delay(s, node);
    return s->clock.status == PTO_OK;
}

/* Submit what the stream can.
   Invariant of the loop: all nodes of the stream before f->next have been submitted, and nothing holds the stream. */
bool pto_sim_submit(pto_sim *s, pto_sim_stream *f)
{
    while (f->next != NONE && f->hold == PTO_SIM_FREE) {
        int64_t node = f->next;
        if (pto_sim_at(&s->nodes, node)->task < 0) {
            if (!submit_mark(s, f, node))
                return false;
            continue;
        }
        const int64_t *needs = pto_sim_front_weights(&s->front, node);
        if (pto_sim_front_must_wait(&s->front, f, needs)) {
            pto_sim_front_hold_by_window(&s->front, f, needs);
            break;
        }
        if (!pto_sim_submit_task(s, f, node))
            return false;
    }
    return true;
}

bool pto_sim_submit_all(pto_sim *s)
{
    for (pto_sim_stream *f; (f = pto_sim_front_next(&s->front)) != NULL;)
        if (!pto_sim_submit(s, f))
            return false;
    return true;
}

/* ---- going on in time ---- */

static bool dispatch(pto_sim *s)
{
    if (!s->clock.is_started)
        return true;
    if (s->clock.events[PTO_SIM_START_COMES].n > 0 && !pto_sim_begin_due(&s->executors))
        return false;
    return s->pools.has_service && s->pools.is_open ? pto_sim_serve(&s->service) : pto_sim_dispatch(&s->executors);
}

static inline int64_t earlier(int64_t a, int64_t b)        /* -1: never */
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* The next time at which anything happens, -1: none. It is now for a task of no cost. */
static int64_t next_time(pto_sim *s)
{
    int64_t next = earlier(pto_sim_clock_next(&s->clock), pto_sim_release_next(&s->release));
    return s->executors.memory.n > 0 ? earlier(next, pto_sim_memory_next(&s->executors.memory)) : next;
}

/* The next time is the last one that 64 bits hold, and may be beyond it: for a task that runs, or is dispatched or retired, if any. */
static bool end_of_time(pto_sim *s)
{
    const pto_sim_heap *running = &s->clock.events[PTO_SIM_TASK_ENDS], *serving = &s->clock.events[PTO_SIM_SERVICE_ENDS];
    int64_t node = NONE;
    if (running->n > 0 && running->data[0].time == INT64_MAX)
        node = s->pools.executors[running->data[0].id].running;
    else if (pto_sim_memory_next(&s->executors.memory) == INT64_MAX)
        node = s->pools.executors[s->executors.memory.flows[0].executor].running;
    else if (serving->n > 0 && serving->data[0].time == INT64_MAX)
        node = s->service.servers[serving->data[0].id].node;
    return pto_sim_fail_at(&s->clock, PTO_E_OVERFLOW, node < 0 ? NONE : pto_sim_at(&s->nodes, node)->task);
}

static void complete_task(pto_sim *s, int64_t node)
{
    s->last_completion = s->clock.now;
    pto_sim_complete(s, node);
}

/* The executor of a task has ended it: tell the successors, or the worker that is to retire the task; a copy may have links ahead. */
static bool task_ended(pto_sim *s, int64_t executor)
{
    bool goes_on = false;
    if (s->nodes.keeps_routes && !pto_sim_trace_hop(&s->executors, executor))
        return false;
    int64_t node = pto_sim_end(&s->executors, executor);
    if (s->nodes.keeps_routes && (!pto_sim_pools_forward(&s->pools, node, &goes_on) || goes_on))
        return goes_on;
    if (s->pools.has_service)
        return pto_sim_service_retire(&s->service, executor, node);
    complete_task(s, node);
    return true;
}

/* Dispatch, go on to the next time, complete all that is to happen then; streams submit what they may. False: nothing runs any more, or
   an error.
   Invariant of the loops: events of one time happen in the order of their kinds, then of their ids. */
bool pto_sim_advance(pto_sim *s)
{
    pto_sim_clock *clock = &s->clock;
    s->front.has_let_go = false;
    if (pto_sim_clock_cancelled(clock) || (!s->is_plain && !pto_sim_release_settle(&s->release)) || !dispatch(s))
        return false;
    pto_sim_front_count_ready(&s->front);
    int64_t next = s->front.has_let_go ? clock->now : next_time(s);    /* a stream goes on now: executors have taken ready tasks */
    if (next != clock->now && s->front.n_overflows > 0)
        return pto_sim_front_overflow(&s->front, s->n_tasks);
    if (next < 0)
        return false;
    if (next == INT64_MAX)
        return end_of_time(s);
    clock->now = next;
    while (pto_sim_clock_is_due(clock, PTO_SIM_TASK_ENDS))
        if (!task_ended(s, pto_sim_clock_take(clock, PTO_SIM_TASK_ENDS)))
            return false;
    while (pto_sim_memory_is_due(&s->executors.memory, clock->now)) {
        int64_t executor = pto_sim_memory_end(&s->executors.memory, clock->now);
        if (!pto_sim_count_slowed(&s->executors, executor) || !task_ended(s, executor))
            return false;
    }
    while (pto_sim_clock_is_due(clock, PTO_SIM_SERVICE_ENDS)) {
        int64_t node = pto_sim_end_service(&s->service);
        if (node >= 0)
            complete_task(s, node);
        if (clock->status != PTO_OK)
            return false;
    }
    while (pto_sim_clock_is_due(clock, PTO_SIM_DELAY_ENDS))
        pto_sim_complete(s, pto_sim_clock_take(clock, PTO_SIM_DELAY_ENDS));
    while (pto_sim_clock_is_due(clock, PTO_SIM_EDGE_ARRIVES))
        edge_arrives(s, pto_sim_clock_take(clock, PTO_SIM_EDGE_ARRIVES));
    if (clock->events[PTO_SIM_SUBMISSION_ENDS].n > 0)
        pto_sim_front_wake(&s->front);
    pto_sim_front_count_ready(&s->front);
    return pto_sim_submit_all(s) && clock->status == PTO_OK;
}
