/* sim.c: replay a stream of tasks in virtual time.

   Tasks are submitted in order, as early as the window has a slot; submitting costs nothing. A slot frees when its task
   and all earlier ones have completed. A ready task waits for its own executor, which takes the one with the lowest (ready
   time, task). At one time completions come first, then submissions, then dispatch, and this repeats while tasks of no
   cost complete. Joins take no slot, executor or time.

   A feed stops as soon as its last task is submitted, before any dispatch of that time, because the next feed may go on
   submitting at the same time. So how a stream is cut into feeds cannot change the result, with one exception:
   critical_path counts an edge only when its source is among the last max(2^20, nodes of the longest feed) nodes. */
#include "sim_queue.h"

#define PTO_MIN_CHAINS ((int64_t)1 << 20)

typedef struct link {
    int64_t node;
    int32_t next;              /* also the free list */
} link;

typedef struct executor {
    pto_sim_ready ready;
    int64_t running;           /* node, -1: idle */
    int64_t n_waiting;         /* submitted and not ready */
    int64_t since;             /* waiting has been counted up to here */
    bool listed;               /* in sim->to_dispatch */
} executor;

struct pto_sim {
    pto_sim_options options;
    int32_t status;            /* the first error: a simulation that lost a task cannot go on */
    bool finished;
    int64_t now;
    int64_t last_completion;
    int64_t n_tasks;           /* submitted */
    int64_t n_retired;
    int64_t work, critical_path;
    int64_t window_stalls, window_stall_cycles, window_high_water;

    pto_sim_ring ring;
    link *links;
    int64_t n_links, links_capacity;
    int32_t links_free;
    int64_t joins;             /* joins to complete now: a list of nodes, -1: none */

    executor *executors;
    pto_sim_heap running;      /* (end, executor) */
    int64_t *to_dispatch;      /* [n_executors] executors that may have become able to start */
    int64_t n_to_dispatch;
    int64_t *busy, *waiting, *tasks_run;

    int64_t *chain;            /* longest chain that ends in a node, in a ring by node id */
    int64_t chain_capacity, chain_limit, chain_first;

    int64_t *start, *end, *ready;      /* by task, with keep_trace */
    int64_t trace_capacity;
};

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static bool fail(pto_sim *s)
{
    s->status = PTO_E_NOMEM;
    return false;
}

/* ---- executors ---- */

/* Count waiting up to now; to be called before idleness or n_waiting changes. */
static void count_waiting(pto_sim *s, int64_t at)
{
    executor *e = &s->executors[at];
    if (e->running < 0 && e->n_waiting > 0)
        s->waiting[at] += s->now - e->since;
    e->since = s->now;
}

static void list_for_dispatch(pto_sim *s, int64_t at)
{
    executor *e = &s->executors[at];
    if (e->running < 0 && !e->listed) {
        e->listed = true;
        s->to_dispatch[s->n_to_dispatch++] = at;
    }
}

static bool make_ready(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->state = PTO_SIM_READY;
    n->ready = s->now;
    if (s->options.keep_trace)
        s->ready[n->task] = s->now;
    list_for_dispatch(s, n->executor);
    return pto_sim_ready_push(&s->executors[n->executor].ready, &s->ring, node) || fail(s);
}

static bool dispatch(pto_sim *s)
{
    for (int64_t i = 0; i < s->n_to_dispatch; i++) {
        int64_t at = s->to_dispatch[i];
        executor *e = &s->executors[at];
        e->listed = false;
        int64_t node = pto_sim_ready_pop(&e->ready, &s->ring);
        if (node < 0)
            continue;
        const pto_sim_node *n = pto_sim_at(&s->ring, node);
        count_waiting(s, at);
        e->running = node;
        s->busy[at] = add(s->busy[at], n->cost);
        s->tasks_run[at]++;
        if (s->options.keep_trace) {
            s->start[n->task] = s->now;
            s->end[n->task] = add(s->now, n->cost);
        }
        if (!pto_sim_heap_push(&s->running, (pto_sim_entry){add(s->now, n->cost), at}))
            return fail(s);
    }
    s->n_to_dispatch = 0;
    return true;
}

/* ---- completing ---- */

static void release(pto_sim *s, int64_t node)
{
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    n->state = PTO_SIM_DONE;
    for (int32_t at = n->first_link; at >= 0;) {
        link *l = &s->links[at];
        int64_t succ = l->node;
        int32_t next = l->next;
        l->next = s->links_free;
        s->links_free = at;
        at = next;
        pto_sim_node *m = pto_sim_at(&s->ring, succ);
        if (--m->n_pending > 0)
            continue;
        if (m->task < 0) {
            m->next = s->joins;
            s->joins = succ;
            continue;
        }
        count_waiting(s, m->executor);
        s->executors[m->executor].n_waiting--;
        make_ready(s, succ);
    }
}

/* Complete a node, the joins that it was the last to hold back, and theirs. */
static void complete(pto_sim *s, int64_t node)
{
    release(s, node);
    while (s->joins >= 0) {
        int64_t join = s->joins;
        s->joins = pto_sim_at(&s->ring, join)->next;
        release(s, join);
    }
    while (s->ring.first < s->ring.next) {
        const pto_sim_node *n = pto_sim_at(&s->ring, s->ring.first);
        if (n->state != PTO_SIM_DONE)
            break;
        s->n_retired += n->task >= 0;
        s->ring.first++;
    }
}

/* Dispatch, then go to the next completion (which is now for a task of no cost) and complete all of its time. False when
   nothing runs any more, or after an error. */
static bool advance(pto_sim *s)
{
    if (!dispatch(s) || s->running.n == 0)
        return false;
    s->now = s->running.data[0].key;
    s->last_completion = s->now;
    while (s->running.n > 0 && s->running.data[0].key == s->now) {
        int64_t at = pto_sim_heap_pop(&s->running).id;
        executor *e = &s->executors[at];
        int64_t node = e->running;
        count_waiting(s, at);
        e->running = -1;
        list_for_dispatch(s, at);
        complete(s, node);
    }
    return s->status == PTO_OK;
}

/* ---- submitting ---- */

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
        return fail(s);
    for (int64_t i = s->chain_first; i < node; i++)
        chain[i & (grown - 1)] = s->chain[i & (s->chain_capacity - 1)];
    free(s->chain);
    s->chain = chain;
    s->chain_capacity = grown;
    return true;
}

static bool add_link(pto_sim *s, int64_t src, int64_t dst)
{
    int32_t at = s->links_free;
    if (at >= 0)
        s->links_free = s->links[at].next;
    else if (s->n_links >= INT32_MAX - 1 || !PTO_RESERVE(s->links, s->links_capacity, s->n_links + 1))
        return fail(s);
    else
        at = (int32_t)s->n_links++;
    s->links[at] = (link){dst, -1};
    pto_sim_node *n = pto_sim_at(&s->ring, src);
    if (n->first_link < 0)
        n->first_link = at;
    else
        s->links[n->last_link].next = at;
    n->last_link = at;
    return true;
}

/* Enter the node behind all others, with its predecessors src[0..n_src). */
static bool enter(pto_sim *s, int64_t task, int64_t cost, int64_t at, const int64_t *src, int64_t n_src)
{
    if (!pto_sim_ring_reserve(&s->ring))
        return fail(s);
    if (!reserve_chain(s))
        return false;
    int64_t node = s->ring.next++, longest = 0;
    pto_sim_node *n = pto_sim_at(&s->ring, node);
    *n = (pto_sim_node){.task = task, .cost = cost, .executor = at, .next = -1, .first_link = -1, .last_link = -1,
                        .state = PTO_SIM_WAITING};
    for (int64_t i = 0; i < n_src; i++) {
        if (src[i] >= s->chain_first && s->chain[src[i] & (s->chain_capacity - 1)] > longest)
            longest = s->chain[src[i] & (s->chain_capacity - 1)];
        if (src[i] < s->ring.first || pto_sim_at(&s->ring, src[i])->state == PTO_SIM_DONE)
            continue;
        n->n_pending++;
        if (!add_link(s, src[i], node))
            return false;
    }
    longest = add(longest, cost);
    s->chain[node & (s->chain_capacity - 1)] = longest;
    if (longest > s->critical_path)
        s->critical_path = longest;
    return true;
}

static bool reserve_trace(pto_sim *s, int64_t n)
{
    if (n <= s->trace_capacity)
        return true;
    int64_t start = s->trace_capacity, end = start, ready = start;
    if (!PTO_RESERVE(s->start, start, n) || !PTO_RESERVE(s->end, end, n) || !PTO_RESERVE(s->ready, ready, n))
        return fail(s);
    s->trace_capacity = start;
    return true;
}

static bool submit(pto_sim *s, int64_t cost, int64_t at, const int64_t *src, int64_t n_src)
{
    int64_t window = s->options.window, before = s->now;
    while (window > 0 && s->n_tasks - s->n_retired >= window)
        if (!advance(s))
            return false;
    if (s->now > before) {
        s->window_stalls++;
        s->window_stall_cycles += s->now - before;
    }
    if ((s->options.keep_trace && !reserve_trace(s, s->n_tasks + 1)) || !enter(s, s->n_tasks, cost, at, src, n_src))
        return false;
    int64_t node = s->ring.next - 1;
    s->n_tasks++;
    s->work = add(s->work, cost);
    if (s->n_tasks - s->n_retired > s->window_high_water)
        s->window_high_water = s->n_tasks - s->n_retired;
    if (pto_sim_at(&s->ring, node)->n_pending == 0)
        return make_ready(s, node);
    count_waiting(s, at);
    s->executors[at].n_waiting++;
    return true;
}

int32_t pto_sim_feed(pto_sim *s, const pto_record *record)
{
    pto_columns c;
    pto_record_columns(record, &c);
    if (s->status != PTO_OK)
        return s->status;
    if (s->finished || c.first_node != s->ring.next || c.first_task != s->n_tasks)
        return PTO_E_ARGUMENT;
    for (int64_t i = 0; i < c.n_tasks; i++)
        if (c.task_worker[i] < 0 || c.task_worker[i] >= s->options.n_executors)
            return PTO_E_ARGUMENT;
    while (s->chain_limit < c.n_nodes)
        s->chain_limit *= 2;
    for (int64_t i = 0; i < c.n_nodes; i++) {
        const int64_t *src = c.edge_src + c.pred_begin[i];
        int64_t n_src = c.pred_begin[i + 1] - c.pred_begin[i], task = c.node_task[i];
        if (task >= 0) {
            if (!submit(s, c.task_cost[task], c.task_worker[task], src, n_src))
                return s->status != PTO_OK ? s->status : (s->status = PTO_E_DEADLOCK);
        } else {
            if (!enter(s, -1, 0, -1, src, n_src))
                return s->status;
            if (pto_sim_at(&s->ring, s->ring.next - 1)->n_pending == 0)
                complete(s, s->ring.next - 1);
        }
    }
    return s->status;
}

int32_t pto_sim_finish(pto_sim *s, pto_sim_result *out)
{
    while (s->status == PTO_OK && advance(s))
        ;
    if (s->status == PTO_OK && s->ring.first < s->ring.next)
        s->status = PTO_E_DEADLOCK;
    s->finished = true;
    *out = (pto_sim_result){.total_cycles = s->last_completion, .n_tasks = s->n_tasks,
                            .critical_path = s->critical_path, .work = s->work, .window_stalls = s->window_stalls,
                            .window_stall_cycles = s->window_stall_cycles,
                            .window_high_water = s->window_high_water, .busy = s->busy, .waiting = s->waiting,
                            .tasks_run = s->tasks_run};
    if (s->options.keep_trace) {
        out->start = s->start;
        out->end = s->end;
        out->ready = s->ready;
    }
    return s->status;
}

/* ---- life ---- */

pto_sim *pto_sim_new(const pto_sim_options *options)
{
    if (options->n_executors < 1 || options->window < 0)
        return NULL;
    pto_sim *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    size_t n = (size_t)options->n_executors;
    s->options = *options;
    s->links_free = -1;
    s->joins = -1;
    s->chain_limit = PTO_MIN_CHAINS;
    s->executors = calloc(n, sizeof *s->executors);
    s->to_dispatch = calloc(n, sizeof *s->to_dispatch);
    s->busy = calloc(n, sizeof *s->busy);
    s->waiting = calloc(n, sizeof *s->waiting);
    s->tasks_run = calloc(n, sizeof *s->tasks_run);
    if (s->executors == NULL || s->to_dispatch == NULL || s->busy == NULL || s->waiting == NULL ||
        s->tasks_run == NULL) {
        pto_sim_free(s);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        s->executors[i].ready.first = s->executors[i].ready.last = -1;
        s->executors[i].running = -1;
    }
    return s;
}

void pto_sim_free(pto_sim *s)
{
    if (s == NULL)
        return;
    if (s->executors != NULL)
        for (int64_t i = 0; i < s->options.n_executors; i++)
            free(s->executors[i].ready.late.data);
    free(s->ring.nodes);
    free(s->links);
    free(s->executors);
    free(s->running.data);
    free(s->to_dispatch);
    free(s->busy);
    free(s->waiting);
    free(s->tasks_run);
    free(s->chain);
    free(s->start);
    free(s->end);
    free(s->ready);
    free(s);
}
