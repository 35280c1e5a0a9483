/* test_streams.c: several streams in virtual time: hand-computed pipelines, random ones against every cycle looked at. */
#include <sys/resource.h>

#include "check.h"

enum { MAX_NODES = 60, MAX_PREDS = 3, MAX_WORKERS = 3, MAX_STREAMS = 3 };

static pto_record *record_new(void)
{
    return pto_record_new(&(pto_record_options){0});
}

static int64_t task(pto_sink *sink, int32_t stream, int64_t worker, int64_t cost, int64_t after)
{
    pto_task t = {.stream = stream, .worker = worker, .cost = cost, .n_order = 1, .order = &after};
    return sink->submit(sink, &t);
}

static int64_t mark(pto_sink *sink, int32_t stream, int32_t flags, int32_t stall, int64_t before, int64_t delay)
{
    return sink->mark(sink, &(pto_mark){.stream = stream, .flags = flags, .stall = stall, .why = PTO_EDGE_CHANNEL,
                                        .site = -1, .n_before = 1, .before = &before, .delay = delay});
}

/* The streams 1 .. n begin where the main one stands, which rests meanwhile. */
static void fork_streams(pto_sink *sink, int32_t n)
{
    int64_t fork = mark(sink, 0, PTO_MARK_RESTS, 0, -1, 0);
    for (int32_t stream = 1; stream <= n; stream++)
        mark(sink, stream, PTO_MARK_BLOCKS, 0, fork, 0);
}

static pto_sim_result simulate(pto_sim **sim, const pto_record *record, int64_t n_workers, int64_t window)
{
    pto_sim_result result;
    *sim = pto_sim_new(&(pto_sim_options){.n_workers = n_workers, .window = window, .keep_trace = 1});
    CHECK_EQ(pto_sim_feed(*sim, record), PTO_OK);
    CHECK_EQ(pto_sim_finish(*sim, &result), PTO_OK);
    return result;
}

/* 5, 5 on worker 0 and 3, 3, 3 on worker 1: with one slot each, neither stream waits for the other's tasks. */
static void every_stream_has_its_own_window(void)
{
    for (int32_t forks = 0; forks < 2; forks++) {
        pto_record *record = record_new();
        pto_sink *sink = pto_record_sink(record);
        if (forks)
            fork_streams(sink, 2);
        for (int32_t i = 0; i < 2; i++)
            task(sink, 1, 0, 5, -1);
        if (!forks)         /* a stream that nobody announced begins where it first stands in the record, at time 5 - 5 */
            pto_record_reset(record), task(sink, 1, 0, 5, -1), task(sink, 2, 1, 3, -1), task(sink, 1, 0, 5, -1);
        for (int32_t i = forks ? 0 : 1; i < 3; i++)
            task(sink, 2, 1, 3, -1);
        pto_sim *sim;
        pto_sim_result r = simulate(&sim, record, 2, 1);
        CHECK_EQ(r.total_cycles, 10);
        CHECK_EQ(r.end[4], 9);
        CHECK(r.window_stalls == 3 && r.window_stall_cycles == 11 && r.window_high_water == 1);
        CHECK_EQ(r.critical_path, 5);
        CHECK(r.stalls[PTO_STALL_CHANNEL_EMPTY] == 0 && r.stall_cycles[PTO_STALL_CHANNEL_FULL] == 0);
        pto_sim_free(sim);
        pto_record_free(record);
    }
}

/* Three tokens through one slot, latency 2. Sent tasks take 4 on worker 0, what is done with a token 10 on worker 1.
   Send 1 waits for receive 0 at 6, send 2 for receive 1. With structure edges a receive also waits for the work before. */
static void a_channel_of_depth_one(void)
{
    for (int32_t structure = 0; structure < 2; structure++) {
        pto_record *record = record_new();
        pto_sink *sink = pto_record_sink(record);
        int64_t received = -1, work = -1;
        fork_streams(sink, 2);
        for (int32_t k = 0; k < 3; k++) {
            if (k > 0)
                mark(sink, 1, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_FULL, received, 0);
            int64_t token = mark(sink, 1, 0, 0, task(sink, 1, 0, 4, -1), 2);
            received = sink->mark(sink, &(pto_mark){.stream = 2, .flags = PTO_MARK_BLOCKS, .why = PTO_EDGE_CHANNEL,
                                                    .stall = PTO_STALL_CHANNEL_EMPTY, .n_before = 1, .before = &token,
                                                    .n_order = structure, .order = &work});
            work = task(sink, 2, 1, 10, -1);
        }
        pto_sim *sim;
        pto_sim_result r = simulate(&sim, record, 2, 8);
        CHECK_EQ(r.total_cycles, 36);
        CHECK(r.start[0] == 0 && r.start[2] == 6 && r.start[1] == 6 && r.start[3] == 16 && r.start[5] == 26);
        CHECK_EQ(r.start[4], structure ? 16 : 12);
        CHECK_EQ(r.ready[5], structure ? 26 : 18);
        CHECK_EQ(r.critical_path, structure ? 36 : 28);
        /* with structure, tokens 1 and 2 are there before the work on the one before is done */
        CHECK_EQ(r.stalls[PTO_STALL_CHANNEL_EMPTY], structure ? 1 : 3);
        CHECK_EQ(r.stall_cycles[PTO_STALL_CHANNEL_EMPTY], structure ? 6 : 6 + 6 + 6);
        CHECK_EQ(r.stalls[PTO_STALL_NONE], structure ? 2 : 0);
        CHECK_EQ(r.stall_cycles[PTO_STALL_NONE], structure ? 10 + 10 : 0);
        CHECK_EQ(r.stalls[PTO_STALL_CHANNEL_FULL], 2);
        CHECK_EQ(r.stall_cycles[PTO_STALL_CHANNEL_FULL], structure ? 6 + 10 : 6 + 6);
        CHECK(r.window_stalls == 0 && r.stalls[PTO_STALL_READ] == 0);
        pto_sim_free(sim);
        pto_record_free(record);
    }
}

/* The receiver reads the result of a task of 5 before it is there; only then is the token sent: 4 cycles, latency 1. */
static void a_rendezvous_waits_for_both(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    fork_streams(sink, 2);
    mark(sink, 2, PTO_MARK_BLOCKS, PTO_STALL_READ, task(sink, 2, 1, 5, -1), 0);
    int64_t there = mark(sink, 2, 0, 0, -1, 0);        /* complete once its stream has come to it */
    mark(sink, 1, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_FULL, there, 0);
    int64_t token = mark(sink, 1, 0, 0, task(sink, 1, 0, 4, -1), 1);
    mark(sink, 1, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_FULL, token, 0);
    task(sink, 1, 0, 1, -1);
    mark(sink, 2, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_EMPTY, token, 0);
    task(sink, 2, 1, 2, -1);
    pto_sim *sim;
    pto_sim_result r = simulate(&sim, record, 2, 1);
    CHECK(r.start[1] == 5 && r.start[2] == 10 && r.start[3] == 10 && r.total_cycles == 12 && r.critical_path == 12);
    CHECK(r.stalls[PTO_STALL_READ] == 1 && r.stall_cycles[PTO_STALL_READ] == 5);
    CHECK(r.stalls[PTO_STALL_CHANNEL_FULL] == 2 && r.stall_cycles[PTO_STALL_CHANNEL_FULL] == 10);
    CHECK(r.stalls[PTO_STALL_CHANNEL_EMPTY] == 1 && r.stall_cycles[PTO_STALL_CHANNEL_EMPTY] == 5);
    CHECK_EQ(r.window_stalls, 0);
    pto_sim_free(sim);
    pto_record_free(record);
}

/* What comes after an event waits for it; a delay that nobody waits for takes no part in the makespan. */
static void delays_count_where_someone_waits(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    int64_t event = mark(sink, 0, 0, 0, task(sink, 0, 0, 3, -1), 7);
    task(sink, 0, 0, 2, -1);
    task(sink, 0, 1, 1, event);
    mark(sink, 0, 0, 0, event, 1000);
    pto_sim *sim;
    pto_sim_result r = simulate(&sim, record, 2, 0);
    CHECK(r.start[1] == 3 && r.start[2] == 10 && r.total_cycles == 11 && r.critical_path == 11);
    CHECK(r.late[1] == 3 && r.waiting[1] == 7);        /* worker 0 has two ready tasks at first */
    pto_sim_free(sim);
    pto_record_free(record);
}

/* ---- against the same rules, written down cycle by cycle ---- */

typedef struct program {
    int64_t n, n_workers, n_streams, window;
    int64_t is_task[MAX_NODES], cost[MAX_NODES], worker[MAX_NODES], stream[MAX_NODES], blocks[MAX_NODES];
    int64_t rests[MAX_NODES], stall[MAX_NODES];
    int64_t pred[MAX_NODES][MAX_PREDS];    /* -1: none */
    bool is_order[MAX_NODES][MAX_PREDS];   /* of a mark: structure, else a token; one join is of one kind */
} program;

typedef struct slow_sim {
    int64_t submitted[MAX_NODES], ready[MAX_NODES], start[MAX_NODES], end[MAX_NODES], chain[MAX_NODES];
    int64_t total, longest, window_stall_cycles, window_stalls, waiting[MAX_WORKERS], late[MAX_WORKERS];
    int64_t stalls[PTO_N_STALLS], stall_cycles[PTO_N_STALLS];
} slow_sim;

static bool is_done(const slow_sim *o, int64_t node, int64_t now)
{
    return o->end[node] >= 0 && o->end[node] <= now;
}

/* When what a mark waits for as structure, and as nothing else, had completed. */
static int64_t structure_done(const program *p, const slow_sim *o, int64_t node)
{
    int64_t done = 0;
    for (int32_t k = 0; k < MAX_PREDS; k++) {
        bool only = p->pred[node][k] >= 0;
        for (int32_t i = 0; i < MAX_PREDS; i++)
            only &= p->pred[node][i] != p->pred[node][k] || p->is_order[node][i];
        if (only && o->end[p->pred[node][k]] > done)
            done = o->end[p->pred[node][k]];
    }
    return done;
}

static void count_stall(slow_sim *o, int64_t stall, int64_t from, int64_t to)
{
    o->stalls[stall] += to > from;
    o->stall_cycles[stall] += to > from ? to - from : 0;
}

static bool is_ready(const program *p, const slow_sim *o, int64_t node, int64_t now)
{
    for (int32_t k = 0; k < MAX_PREDS; k++)
        if (p->pred[node][k] >= 0 && !is_done(o, p->pred[node][k], now))
            return false;
    return o->submitted[node] >= 0;
}

/* Submit what `stream` may; true if that was anything. */
static bool submit_of(const program *p, slow_sim *o, int64_t stream, int64_t now, int64_t *stalled_since)
{
    bool changed = false, retiring = true;
    int64_t held = 0;
    for (int64_t t = 0; t < p->n; t++) {
        if (p->stream[t] != stream)
            continue;
        if (o->submitted[t] >= 0) {
            if (p->is_task[t])
                retiring &= is_done(o, t, now);
            held += p->is_task[t] && !retiring;
            if (!p->is_task[t] && p->blocks[t] && !is_done(o, t, now))
                return changed;
            continue;
        }
        if (p->is_task[t] && p->window > 0 && held >= p->window) {
            if (stalled_since[stream] < 0)
                stalled_since[stream] = now;
            return changed;
        }
        if (p->is_task[t] && stalled_since[stream] >= 0 && now > stalled_since[stream]) {
            o->window_stalls++;
            o->window_stall_cycles += now - stalled_since[stream];
        }
        if (p->is_task[t])
            stalled_since[stream] = -1;
        o->submitted[t] = now;
        changed = true;
        retiring &= !p->is_task[t];
        held += p->is_task[t];
        if (!p->is_task[t]) {
            if (is_ready(p, o, t, now))
                o->end[t] = now + p->cost[t];
            if (p->blocks[t] && !is_done(o, t, now))
                return true;
        }
    }
    return changed;
}

static bool dispatch_to(const program *p, slow_sim *o, int64_t worker, int64_t now)
{
    int64_t best = -1;
    for (int64_t t = 0; t < p->n; t++) {
        if (!p->is_task[t] || p->worker[t] != worker)
            continue;
        if (o->start[t] >= 0 && !is_done(o, t, now))
            return false;
        if (o->ready[t] >= 0 && o->start[t] < 0 && (best < 0 || o->ready[t] < o->ready[best]))
            best = t;
    }
    if (best < 0)
        return false;
    o->start[best] = now;
    o->end[best] = now + p->cost[best];
    return p->cost[best] == 0;
}

static void simulate_slowly(const program *p, slow_sim *o)
{
    int64_t stalled_since[MAX_STREAMS] = {-1, -1, -1}, n_done = 0, front[MAX_STREAMS] = {0};
    memset(o, 0, sizeof *o);
    memset(o->submitted, 0xff, sizeof o->submitted);
    memset(o->ready, 0xff, sizeof o->ready);
    memset(o->start, 0xff, sizeof o->start);
    memset(o->end, 0xff, sizeof o->end);
    for (int64_t now = 0; n_done < p->n; now++) {
        for (bool again = true; again;) {
            for (bool changed = true; changed;) {
                changed = false;
                for (int64_t t = 0; t < p->n; t++)
                    if (!p->is_task[t] && o->end[t] < 0 && is_ready(p, o, t, now)) {
                        o->end[t] = now + p->cost[t];
                        changed = true;
                    }
                for (int64_t s = 0; s < p->n_streams; s++)
                    changed |= submit_of(p, o, s, now, stalled_since);
            }
            for (int64_t t = 0; t < p->n; t++)
                if (p->is_task[t] && o->ready[t] < 0 && is_ready(p, o, t, now))
                    o->ready[t] = now;
            again = false;
            for (int64_t w = 0; w < p->n_workers; w++)
                again |= dispatch_to(p, o, w, now);
        }
        n_done = 0;
        for (int64_t t = 0; t < p->n; t++)
            n_done += is_done(o, t, now);
        bool stands = false;
        for (int64_t t = 0; t < p->n; t++)
            stands |= p->is_task[t] && o->ready[t] >= 0 && o->start[t] < 0;
        for (int64_t w = 0; w < p->n_workers; w++) {
            bool busy = false, waits = false;
            for (int64_t t = 0; t < p->n; t++) {
                if (!p->is_task[t] || p->worker[t] != w || o->submitted[t] < 0)
                    continue;
                busy |= o->start[t] >= 0 && !is_done(o, t, now);
                waits |= o->ready[t] < 0;
            }
            o->waiting[w] += !busy && waits && !stands;
            o->late[w] += !busy && stands;
        }
    }
    for (int64_t t = 0; t < p->n; t++) {
        o->chain[t] = front[p->stream[t]];
        for (int32_t k = 0; k < MAX_PREDS; k++)
            if (p->pred[t][k] >= 0 && o->chain[p->pred[t][k]] > o->chain[t])
                o->chain[t] = o->chain[p->pred[t][k]];
        o->chain[t] += p->cost[t];
        if (p->is_task[t]) {
            o->longest = o->chain[t] > o->longest ? o->chain[t] : o->longest;
            o->total = o->end[t] > o->total ? o->end[t] : o->total;
        } else if (p->blocks[t]) {
            front[p->stream[t]] = o->chain[t];
            int64_t since = p->stall[t] == PTO_STALL_READ ? 0 : structure_done(p, o, t);
            since = since > o->submitted[t] ? since : o->submitted[t];
            count_stall(o, PTO_STALL_NONE, o->submitted[t], since);
            count_stall(o, p->stall[t], since, o->end[t]);
        }
    }
}

/* Every stream begins with a mark, so that all are open from the start; some rest for good, here and there. */
static void random_program(program *p)
{
    bool rests[MAX_STREAMS] = {false};
    memset(p, 0, sizeof *p);
    p->n_streams = pick(1, MAX_STREAMS);
    p->n_workers = pick(1, MAX_WORKERS);
    p->window = pick(0, 2) ? pick(1, 6) : 0;
    p->n = pick(p->n_streams + 1, MAX_NODES);
    for (int64_t t = 0; t < p->n; t++) {
        int64_t stream = t < p->n_streams ? t : pick(0, p->n_streams - 1);
        while (rests[stream])
            stream = (stream + 1) % p->n_streams;
        int64_t n_going_on = 0;
        for (int64_t s = 0; s < p->n_streams; s++)
            n_going_on += !rests[s];
        p->rests[t] = rests[stream] = t >= p->n_streams && n_going_on > 1 && pick(0, 14) == 0;
        bool is_mark = t < p->n_streams || p->rests[t] || pick(0, 2) == 0;
        p->is_task[t] = !is_mark;
        p->stream[t] = stream;
        p->cost[t] = pick(0, 2) ? pick(0, 6) : 0;
        p->worker[t] = pick(0, p->n_workers - 1);
        p->blocks[t] = is_mark && pick(0, 1);
        p->stall[t] = pick(0, PTO_N_STALLS - 1);
        for (int32_t k = 0; k < MAX_PREDS; k++) {
            p->pred[t][k] = t > 0 && pick(0, 2) == 0 ? pick(t > 12 ? t - 12 : 0, t - 1) : -1;
            p->is_order[t][k] = t % 4 == 3 && k > 0 ? p->is_order[t][0] : pick(0, 1);
        }
    }
}

/* One orchestrator for both: the program comes in through a global, as an artifact's would through its bindings. */
static program current;

static int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    int64_t node[MAX_NODES];
    (void)bindings;
    for (int64_t t = 0; t < current.n; t++) {
        int64_t order[MAX_PREDS];
        for (int32_t k = 0; k < MAX_PREDS; k++)
            order[k] = current.pred[t][k] < 0 ? -1 : node[current.pred[t][k]];
        if (t % 4 == 3) {       /* the same predecessors through a join */
            int64_t join = sink->join_open(sink);
            for (int32_t k = 0; k < MAX_PREDS; k++)
                sink->join_add(sink, join, order[k]);
            order[0] = sink->join_close(sink, join, -1);
            order[1] = order[2] = -1;
        }
        if (current.is_task[t]) {
            pto_task one = {.stream = (int32_t)current.stream[t], .worker = current.worker[t], .cost = current.cost[t],
                            .n_order = MAX_PREDS, .order = order};
            node[t] = sink->submit(sink, &one);
        } else {
            int64_t structural[MAX_PREDS], before[MAX_PREDS];
            for (int32_t k = 0; k < MAX_PREDS; k++) {
                structural[k] = current.is_order[t][k] ? order[k] : -1;
                before[k] = current.is_order[t][k] ? -1 : order[k];
            }
            pto_mark one = {.stream = (int32_t)current.stream[t], .stall = (int32_t)current.stall[t],
                            .flags = (current.blocks[t] ? PTO_MARK_BLOCKS : 0) | (current.rests[t] ? PTO_MARK_RESTS : 0),
                            .delay = current.cost[t], .n_order = MAX_PREDS, .order = structural,
                            .why = PTO_EDGE_CHANNEL, .n_before = MAX_PREDS, .before = before};
            node[t] = sink->mark(sink, &one);
        }
    }
    return sink->status;
}

static void check_same(const pto_sim_result *r, const program *p, const slow_sim *o)
{
    for (int64_t t = 0, at = 0; t < p->n; t++) {
        if (!p->is_task[t])
            continue;
        CHECK_EQ(r->start[at], o->start[t]);
        CHECK_EQ(r->end[at], o->end[t]);
        CHECK_EQ(r->ready[at], o->ready[t]);
        at++;
    }
    CHECK_EQ(r->total_cycles, o->total);
    CHECK_EQ(r->critical_path, o->longest);
    CHECK_EQ(r->window_stalls, o->window_stalls);
    CHECK_EQ(r->window_stall_cycles, o->window_stall_cycles);
    CHECK(memcmp(r->stalls, o->stalls, sizeof r->stalls) == 0);
    CHECK(memcmp(r->stall_cycles, o->stall_cycles, sizeof r->stall_cycles) == 0);
    for (int64_t w = 0; w < p->n_workers; w++)
        CHECK(r->waiting[w] == o->waiting[w] && r->late[w] == o->late[w]);
    CHECK(p->window == 0 || r->window_high_water <= p->window);
}

static void random_programs_agree_and_chunks_change_nothing(void)
{
    for (int64_t i = 0; i < CASES(4000); i++) {
        static slow_sim slow;
        random_program(&current);
        simulate_slowly(&current, &slow);
        pto_record *record = record_new();
        CHECK_EQ(orchestrate(NULL, pto_record_sink(record)), PTO_OK);
        pto_sim *sim;
        pto_sim_result r = simulate(&sim, record, current.n_workers, current.window);
        check_same(&r, &current, &slow);
        pto_sim_free(sim);
        pto_record_free(record);

        record = pto_record_new(&(pto_record_options){.max_tasks = pick(1, 20), .window = current.window});
        sim = pto_sim_new(&(pto_sim_options){.n_workers = current.n_workers, .window = current.window,
                                             .keep_trace = 1});
        pto_execute_result ran;
        CHECK_EQ(pto_run(NULL, record, &(pto_run_options){.orchestrate = orchestrate, .sim = sim}, &ran), PTO_OK);
        pto_columns c;
        pto_record_columns(record, &c);
        if (c.first_node == 0)
            CHECK_EQ(pto_sim_feed(sim, record), PTO_OK);
        CHECK_EQ(pto_sim_finish(sim, &r), PTO_OK);
        check_same(&r, &current, &slow);
        pto_sim_free(sim);
        pto_record_free(record);
    }
}

/* ---- edges from regions: of dropped tasks too, as long as they have not completed in simulated time ---- */

enum { CELLS = 4 };

static int64_t cells[CELLS];

static int32_t orchestrate_cells(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t t = 0; t < current.n; t++) {
        pto_arg arg = {.data = (char *)&cells[current.pred[t][0] & (CELLS - 1)], .extent = {1, 1}, .stride = {1, 1},
                       .elem_bytes = 8, .flags = current.blocks[t] || current.stall[t] > 1 ? PTO_READ : PTO_WRITE};
        pto_task one = {.stream = (int32_t)current.stream[t], .worker = current.worker[t], .cost = current.cost[t],
                        .n_args = 1, .args = &arg};
        pto_mark other = {.stream = (int32_t)current.stream[t], .flags = current.blocks[t] ? PTO_MARK_BLOCKS : 0,
                          .delay = current.cost[t], .n_args = current.stall[t] == PTO_STALL_READ, .args = &arg};
        if (current.is_task[t])
            sink->submit(sink, &one);
        else
            sink->mark(sink, &other);
    }
    return sink->status;
}

static void what_is_forgotten_has_completed(void)
{
    for (int64_t i = 0; i < CASES(4000); i++) {
        random_program(&current);
        pto_sim_result r[2];
        pto_sim *sims[2];
        for (int32_t cut = 0; cut < 2; cut++) {
            pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = cut ? pick(1, 4) : 0, .infer = 1,
                                                                      .window = current.window > 0 ? current.window : 1});
            pto_execute_result ran;
            sims[cut] = pto_sim_new(&(pto_sim_options){.n_workers = current.n_workers, .window = current.window,
                                                       .keep_trace = 1});
            pto_run_options options = {.orchestrate = orchestrate_cells, .sim = sims[cut]};
            CHECK_EQ(pto_run(NULL, record, &options, &ran), PTO_OK);
            pto_columns c;
            pto_record_columns(record, &c);
            if (c.first_node == 0)
                CHECK_EQ(pto_sim_feed(sims[cut], record), PTO_OK);
            CHECK_EQ(pto_sim_finish(sims[cut], &r[cut]), PTO_OK);
            pto_record_free(record);
        }
        CHECK_EQ(r[1].n_tasks, r[0].n_tasks);
        for (int64_t t = 0; t < r[0].n_tasks; t++)
            CHECK(r[1].start[t] == r[0].start[t] && r[1].ready[t] == r[0].ready[t]);
        CHECK(memcmp(r[0].stall_cycles, r[1].stall_cycles, sizeof r[0].stall_cycles) == 0);
        pto_sim_free(sims[0]);
        pto_sim_free(sims[1]);
    }
}

/* ---- a pipeline that is too long to keep ---- */

/* Tokens through two slots: 3 cycles to make, 5 to use, latency 1: after the first, one every 5 cycles. */
static int32_t long_pipeline(const pto_bindings *bindings, pto_sink *sink)
{
    int64_t received[2] = {-1, -1};
    (void)bindings;
    fork_streams(sink, 2);
    for (int64_t k = 0; k < CASES(200000) && sink->status == PTO_OK; k++) {
        mark(sink, 1, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_FULL, received[k % 2], 0);
        int64_t token = mark(sink, 1, 0, 0, task(sink, 1, 0, 3, -1), 1);
        received[k % 2] = mark(sink, 2, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_EMPTY, token, 0);
        mark(sink, 2, PTO_MARK_BLOCKS, PTO_STALL_READ, task(sink, 2, 1, 5, -1), 0);
    }
    int64_t end = mark(sink, 1, PTO_MARK_RESTS, 0, -1, 0), ends = mark(sink, 2, PTO_MARK_RESTS, 0, end, 0);
    task(sink, 0, 0, 7, ends);
    return sink->status;
}

static int64_t resident_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void memory_of_a_long_pipeline_is_bounded(void)
{
    int64_t before = resident_kib();
    pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = 500, .window = 16});
    pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 2, .window = 16});
    pto_execute_result ran;
    pto_sim_result r;
    CHECK_EQ(pto_run(NULL, record, &(pto_run_options){.orchestrate = long_pipeline, .sim = sim}, &ran), PTO_OK);
    CHECK_EQ(pto_sim_finish(sim, &r), PTO_OK);
    CHECK_EQ(r.total_cycles, 4 + 5 * CASES(200000) + 7);
    CHECK(resident_kib() - before < 24000);
    pto_sim_free(sim);
    pto_record_free(record);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(every_stream_has_its_own_window), TEST(a_channel_of_depth_one), TEST(a_rendezvous_waits_for_both),
        TEST(delays_count_where_someone_waits), TEST(random_programs_agree_and_chunks_change_nothing),
        TEST(what_is_forgotten_has_completed),
        TEST(memory_of_a_long_pipeline_is_bounded)};
    return RUN_TESTS(tests);
}
