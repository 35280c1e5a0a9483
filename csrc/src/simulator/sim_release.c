/* sim_release.c: releasing submitted tasks, see sim_release.h.

   The rest of a batch is released, and executors start before as many tasks as they are to wait for, when streams cannot go on. The
   simulator looks at that before dispatch, when all that can be submitted at this time has been. */
#include "sim_release.h"

#include "sim_options.h"

enum { NONE = -1 };

void pto_sim_release_init(pto_sim_release *release, const pto_sim_options *options, pto_sim_front *front, pto_sim_pools *pools)
{
    *release = (pto_sim_release){.options = options, .clock = front->clock, .trace = front->trace, .nodes = front->nodes, .front = front,
                                 .pools = pools, .delays = !pto_sim_releases_at_once(options), .backlog_first = NONE};
    release->clock->is_started = options->start_after == 0;
}

void pto_sim_release_close(pto_sim_release *release)
{
    free(release->batches);
    free(release->to_check);
    free(release->backlog_late.data);
}

/* All that can be submitted has been, so a stream that no time lets go is held, or at its end. */
static bool cannot_go_on(const pto_sim_stream *f)
{
    return f->hold != PTO_SIM_BY_SUBMIT;
}

static bool release_task(pto_sim_release *r, int64_t node)
{
    if (r->trace->is_kept)
        r->trace->released[pto_sim_at(r->nodes, node)->task] = r->clock->now;
    return pto_sim_pools_release(r->pools, node);
}

/* ---- batches ---- */

/* No node of a batch has left the ring: its first task has not even run. Marks stand between its tasks. */
static bool release_batch(pto_sim_release *r, pto_sim_batch *batch)
{
    for (int64_t node = batch->first, follower; batch->n > 0; node = follower) {
        const pto_sim_node *n = pto_sim_at(r->nodes, node);
        follower = n->follower;
        if (n->task < 0)
            continue;
        batch->n--;
        if (!release_task(r, node))
            return false;
    }
    return true;
}

static bool join_batch(pto_sim_release *r, int32_t stream, int64_t node)
{
    if (!PTO_RESERVE(r->batches, r->batches_capacity, (int64_t)stream + 1) ||
        !PTO_RESERVE(r->to_check, r->to_check_capacity, (int64_t)stream + 1))
        return pto_sim_fail(r->clock);
    while (r->n_batches <= stream)
        r->batches[r->n_batches++] = (pto_sim_batch){0};
    pto_sim_batch *batch = &r->batches[stream];
    if (batch->n++ == 0)
        batch->first = node;
    if (batch->n == r->options->timing_n)
        return release_batch(r, batch);
    if (!batch->is_listed) {
        batch->is_listed = true;
        r->to_check[r->n_to_check++] = stream;
    }
    return true;
}

/* Invariant of the loop: the first n_kept streams of the list have a batch that waits, and stay listed. */
static bool release_rests(pto_sim_release *r)
{
    int64_t n_kept = 0;
    for (int64_t i = 0; i < r->n_to_check; i++) {
        pto_sim_batch *batch = &r->batches[r->to_check[i]];
        if (cannot_go_on(&r->front->streams[r->to_check[i]]) && !release_batch(r, batch))
            return false;
        batch->is_listed = batch->n > 0;
        if (batch->is_listed)
            r->to_check[n_kept++] = r->to_check[i];
    }
    r->n_to_check = n_kept;
    return true;
}

/* ---- the backlog of a rate ---- */

/* Until a task may run, its `ready` is when it was submitted. */
static pto_sim_entry backlog_entry(const pto_sim_release *r, int64_t node)
{
    return (pto_sim_entry){pto_sim_at(r->nodes, node)->ready, node};
}

static bool join_backlog(pto_sim_release *r, int64_t node)
{
    pto_sim_at(r->nodes, node)->ready = r->clock->now;
    r->n_backlog++;
    if (r->backlog_first == NONE) {
        r->backlog_first = r->backlog_last = node;
    } else if (pto_sim_entry_before(backlog_entry(r, node), backlog_entry(r, r->backlog_last))) {
        return pto_sim_heap_push(&r->backlog_late, backlog_entry(r, node)) || pto_sim_fail(r->clock);
    } else {
        pto_sim_at(r->nodes, r->backlog_last)->next = node;
        r->backlog_last = node;
    }
    return true;
}

static int64_t leave_backlog(pto_sim_release *r)
{
    int64_t node = r->backlog_first;
    r->n_backlog--;
    if (r->backlog_late.n > 0 && (node == NONE || pto_sim_entry_before(r->backlog_late.data[0], backlog_entry(r, node))))
        return pto_sim_heap_pop(&r->backlog_late).id;
    r->backlog_first = pto_sim_at(r->nodes, node)->next;
    return node;
}

/* A release that nobody waited for when it was due happens now, and the next is due so much later; a release that happened in time,
   though a part of a cycle late, moves nothing.
   Invariant of the loop: `due` is due_whole + due_part / release_den, rounded up, and 0 <= due_part < release_den. */
static bool release_due(pto_sim_release *r)
{
    int64_t num = r->options->release_num, den = r->options->release_den, now = r->clock->now;
    while (r->n_backlog > 0 && r->due <= now) {
        if (r->due < now) {
            r->due_whole = now;
            r->due_part = 0;
        }
        r->due_whole = pto_sim_add(r->due_whole, num / den);
        r->due_part += num % den;
        if (r->due_part >= den) {
            r->due_part -= den;
            r->due_whole = pto_sim_add(r->due_whole, 1);
        }
        r->due = pto_sim_add(r->due_whole, r->due_part > 0);
        if (!release_task(r, leave_backlog(r)))
            return false;
    }
    return true;
}

/* ---- entry ---- */

bool pto_sim_release_delay(pto_sim_release *r, int32_t stream, int64_t node)
{
    switch (r->options->timing) {
    case PTO_TIMING_BATCHED:
        return join_batch(r, stream, node);
    case PTO_TIMING_RATE:
        return join_backlog(r, node);
    default:
        return true;
    }
}

bool pto_sim_release_settle(pto_sim_release *r)
{
    if (!release_rests(r) || !release_due(r))
        return false;
    bool may_start = !r->clock->is_started;
    for (int64_t i = 0; i < r->front->n_streams && may_start; i++)
        may_start = cannot_go_on(&r->front->streams[i]);
    if (may_start)
        pto_sim_start(r->clock);
    return true;
}
