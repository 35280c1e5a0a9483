/* pto_channel.h: channels and events between the processes of a pipeline, for generated orchestrators.

   A process is a function that goes on where it stood: it returns when it has to wait, and when it has ended. pto_run_processes
   calls them in turn until all have. Whom a token comes from and whom it goes to is decided by whose turn it is, never by who came
   first, so a pipeline makes the same tasks in any order of calls. Tokens are numbered from 0. Send number k waits until token
   k - depth has been taken; at depth 0 a token waits for its consumer, and its sender for the token.

   plan/waits/channel_state.py is the same for the interpreter; a test holds the two streams against each other. */
#ifndef PTO_CHANNEL_H
#define PTO_CHANNEL_H
#include <stdlib.h>
#include <string.h>
#include "pto_wsp.h"

#define PTO_ENDED (-1)         /* pto_process.step */

/* One process, or one replica of it: the first field of its frame. */
typedef struct pto_process {
    int32_t step;              /* where it goes on: the number of the statement, 0 at the start, or PTO_ENDED */
    int32_t stream;
    int32_t replica;
    int32_t reserved;
    int64_t after;             /* the node that what follows waits for (structure), -1: none */
    int64_t end;               /* the mark at which it has nothing more to submit */
    pto_stuck stands;          /* at which statement, and what for, while it waits */
} pto_process;

/* Streams that take turns, in the order of their declaration. */
typedef struct pto_turns {
    const int32_t *streams;    /* [n] */
    int32_t n;
    int32_t at;                /* of the one whose turn it is, unless that has ended */
} pto_turns;

typedef struct pto_token {
    int64_t node;              /* when it is there; once it has been taken, when that was */
    int32_t stream;            /* who sent it, at which statement */
    int32_t site;
} pto_token;

typedef struct pto_channel {
    int32_t number;            /* in the plan */
    int32_t n_payload;
    int64_t depth;
    int64_t latency;           /* cycles until a token that has been sent is there */
    pto_turns producers, consumers;
    int64_t n_sent, n_received;
    int64_t arrived;           /* depth 0: the mark at which the next token's consumer has come, -1: it has not */
    pto_token *tokens;         /* [capacity] token k at k mod capacity, until token k + depth overwrites it */
    int64_t *payload;          /* [capacity][n_payload] */
    int64_t capacity;          /* grows to depth (to 1 at depth 0) with the tokens that are sent */
    int64_t initial;           /* tokens that it begins with; as many may be left at the end */
} pto_channel;

typedef struct pto_event {
    int32_t number;            /* in the plan */
    int32_t recorder;          /* the stream that records it, 0: none does */
    int64_t *nodes;            /* [capacity] of its records */
    int64_t n, capacity;
} pto_event;

/* A pipeline while it runs. */
typedef struct pto_pipeline {
    pto_sink *sink;
    pto_process **processes;   /* [n_processes] by stream, from first_stream on */
    pto_channel *channels;
    pto_event *events;
    int32_t n_processes, n_channels, n_events;
    int32_t first_stream;
    int32_t structure;         /* 1: statements of a process wait for those before them */
    int32_t reserved;
    int64_t n_steps;           /* what all processes have sent, taken, recorded and ended */
} pto_pipeline;

enum { PTO_GOES_ON, PTO_WAITS, PTO_CLOSED };

/* ---- turns ---- */

static inline int pto_has_ended(const pto_pipeline *p, int32_t stream)
{
    return p->processes[stream - p->first_stream]->step == PTO_ENDED;
}

/* The stream whose turn it is, -1 when all have ended. */
static inline int32_t pto_turn(const pto_pipeline *p, pto_turns *turns)
{
    for (int32_t k = 0; k < turns->n; ++k) {
        if (!pto_has_ended(p, turns->streams[turns->at]))
            return turns->streams[turns->at];
        turns->at = (turns->at + 1) % turns->n;
    }
    return -1;
}

static inline void pto_next_turn(pto_turns *turns)
{
    turns->at = (turns->at + 1) % turns->n;
}

/* ---- waiting ---- */

/* Let a process stand at a statement until it is called again. */
static inline int pto_stand(pto_process *process, int32_t step, int32_t site, int32_t waits_for, int32_t channel, int64_t position,
                            int32_t peer)
{
    process->step = step;
    process->stands = (pto_stuck){.stream = process->stream, .site = site, .waits_for = waits_for, .channel = channel,
                                  .peer = peer, .position = position};
    return PTO_WAITS;
}

/* End the run: a process waits for what never comes. */
static inline int pto_never(pto_pipeline *p, const pto_process *process, int32_t site, int32_t waits_for, int32_t channel, int64_t position,
                            int32_t peer)
{
    const pto_stuck row = {.stream = process->stream, .site = site, .waits_for = waits_for, .channel = channel, .peer = peer,
                           .position = position};
    p->sink->stuck(p->sink, &row, 1);
    return PTO_WAITS;
}

static inline int64_t pto_pipe_mark(pto_pipeline *p, const pto_process *process, int32_t flags, int32_t why, int32_t stall, int32_t site,
                                    const int64_t *before, int32_t n_before, int64_t after, int64_t delay)
{
    const pto_mark mark = {.stream = process->stream, .flags = flags, .why = why, .stall = stall, .site = site,
                           .n_before = n_before, .n_order = p->structure, .before = before, .order = &after, .delay = delay};
    return p->sink->mark(p->sink, &mark);
}

/* A mark that holds the process until the nodes in `before` have completed. */
static inline int64_t pto_hold(pto_pipeline *p, const pto_process *process, int32_t why, int32_t stall, int32_t site, const int64_t *before,
                               int32_t n_before, int64_t after, int64_t delay)
{
    return pto_pipe_mark(p, process, PTO_MARK_BLOCKS, why, stall, site, before, n_before, after, delay);
}

/* ---- sending ---- */

/* PTO_GOES_ON when the process may send its next token; else it is to return. */
static inline int pto_may_send(pto_pipeline *p, pto_channel *c, pto_process *process, int32_t step, int32_t site)
{
    int32_t consumer = pto_turn(p, &c->consumers), producer = pto_turn(p, &c->producers);
    if (consumer < 0 && c->n_sent - c->n_received >= c->initial)
        return pto_never(p, process, site, PTO_STUCK_LOST, c->number, c->n_sent, -1);
    if (producer != process->stream)
        return pto_stand(process, step, site, PTO_STUCK_TURN, c->number, c->n_sent, producer);
    if (c->depth > 0 ? c->n_sent - c->n_received >= c->depth : c->arrived < 0)
        return pto_stand(process, step, site, PTO_STUCK_SEND, c->number, c->n_sent, consumer);
    return PTO_GOES_ON;
}

/* Make room for one more token: nothing has been overwritten while fewer than depth have been sent. */
static inline int32_t pto_channel_reserve(pto_channel *c)
{
    int64_t most = c->depth > 0 ? c->depth : 1;
    if (c->n_sent < c->capacity || c->capacity == most)
        return PTO_OK;
    int64_t capacity = c->capacity > 0 ? 2 * c->capacity : 16;
    capacity = capacity < most ? capacity : most;
    pto_token *tokens = realloc(c->tokens, (size_t)capacity * sizeof *tokens);
    if (tokens == NULL)
        return PTO_E_NOMEM;
    c->tokens = tokens;
    int64_t *payload = realloc(c->payload, (size_t)(capacity * (c->n_payload + 1)) * sizeof *payload);
    if (payload == NULL)
        return PTO_E_NOMEM;
    c->payload = payload;
    c->capacity = capacity;
    return PTO_OK;
}

/* Give the token of a process that may send: it is there when the nodes in `before` have completed, and the latency has passed;
   before[0] is the channel's own. *after becomes the node of the send. Returns a status. */
static inline int32_t pto_send(pto_pipeline *p, pto_channel *c, pto_process *process, int32_t site, const int64_t *payload,
                               int64_t *before, int32_t n_before, int64_t *after)
{
    if (pto_channel_reserve(c) != PTO_OK)
        return p->sink->status = PTO_E_NOMEM;
    pto_token *token = &c->tokens[c->n_sent % c->capacity];
    int64_t node = *after;
    if (c->depth == 0) {    /* the token itself holds its sender, until it has met its consumer and is there */
        before[0] = c->arrived;
        token->node = node = pto_hold(p, process, PTO_EDGE_CHANNEL, PTO_STALL_CHANNEL_FULL, site, before, n_before, *after, c->latency);
    } else {
        before[0] = -1;
        if (c->n_sent >= c->depth)
            node = pto_hold(p, process, PTO_EDGE_CHANNEL, PTO_STALL_CHANNEL_FULL, site, &token->node, 1, *after, 0);
        if (p->sink->status == PTO_OK)
            token->node = pto_pipe_mark(p, process, 0, PTO_EDGE_CHANNEL, PTO_STALL_NONE, site, before, n_before, node, c->latency);
    }
    if (p->sink->status != PTO_OK)
        return p->sink->status;
    token->stream = process->stream;
    token->site = site;
    if (c->n_payload > 0)
        memcpy(&c->payload[c->n_sent % c->capacity * c->n_payload], payload, (size_t)c->n_payload * sizeof *payload);
    c->arrived = -1;
    c->n_sent++;
    p->n_steps++;
    pto_next_turn(&c->producers);
    *after = node;
    return PTO_OK;
}

/* ---- taking ---- */

/* PTO_GOES_ON when there is a token for the process, PTO_CLOSED when none will come; else it is to return. */
static inline int pto_may_take(pto_pipeline *p, pto_channel *c, pto_process *process, int32_t step, int32_t site, int64_t after)
{
    int32_t producer = pto_turn(p, &c->producers), consumer = pto_turn(p, &c->consumers);
    int is_empty = c->n_sent == c->n_received;
    if (is_empty && producer < 0)
        return PTO_CLOSED;
    if (consumer == process->stream && !is_empty)
        return PTO_GOES_ON;
    if (c->depth == 0 && consumer == process->stream && c->arrived < 0) {
        c->arrived = pto_pipe_mark(p, process, 0, 0, PTO_STALL_NONE, site, NULL, 0, after, 0);
        p->n_steps++;
    }
    if (consumer != process->stream)
        return pto_stand(process, step, site, PTO_STUCK_TURN, c->number, c->n_received, consumer);
    return pto_stand(process, step, site, PTO_STUCK_RECEIVE, c->number, c->n_received, producer);
}

/* Behind pto_may_take: whether it said that no token will come. */
static inline int pto_is_drained(const pto_channel *c)
{
    return c->n_sent == c->n_received;
}

/* The same where there must be a token: a channel that is closed and empty ends the run. */
static inline int pto_must_take(pto_pipeline *p, pto_channel *c, pto_process *process, int32_t step, int32_t site, int64_t after)
{
    int found = pto_may_take(p, c, process, step, site, after);
    return found == PTO_CLOSED ? pto_never(p, process, site, PTO_STUCK_CLOSED, c->number, c->n_received, -1) : found;
}

/* Take the token that is there. Returns what it carries, valid until the process sends or waits; NULL after an error. */
static inline const int64_t *pto_take(pto_pipeline *p, pto_channel *c, const pto_process *process, int32_t site, int64_t *after)
{
    int64_t at = c->n_received % c->capacity;
    int64_t node = pto_hold(p, process, PTO_EDGE_CHANNEL, PTO_STALL_CHANNEL_EMPTY, site, &c->tokens[at].node, 1, *after, 0);
    if (node < 0)
        return NULL;
    c->tokens[at].node = *after = node;
    c->n_received++;
    p->n_steps++;
    pto_next_turn(&c->consumers);
    return &c->payload[at * c->n_payload];
}

/* ---- events ---- */

/* Let an event happen when `before` has (-1: at once), and what stands before it in its process. Returns a status. */
static inline int32_t pto_record_event(pto_pipeline *p, pto_event *e, const pto_process *process, int32_t site, int64_t before, int64_t *after)
{
    if (e->n == e->capacity) {
        int64_t capacity = e->capacity > 0 ? 2 * e->capacity : 16;
        int64_t *nodes = realloc(e->nodes, (size_t)capacity * sizeof *nodes);
        if (nodes == NULL)
            return p->sink->status = PTO_E_NOMEM;
        e->nodes = nodes;
        e->capacity = capacity;
    }
    int64_t node = pto_pipe_mark(p, process, 0, PTO_EDGE_EVENT, PTO_STALL_NONE, site, &before, before >= 0, *after, 0);
    if (node < 0)
        return p->sink->status;
    e->nodes[e->n++] = *after = node;
    p->n_steps++;
    return PTO_OK;
}

/* PTO_GOES_ON when record number `position` has been made; else the process is to return. */
static inline int pto_may_pass(pto_pipeline *p, const pto_event *e, pto_process *process, int32_t step, int32_t site, int64_t position)
{
    if (position < e->n)
        return PTO_GOES_ON;
    if (pto_has_ended(p, e->recorder))
        return pto_never(p, process, site, PTO_STUCK_NEVER, e->number, position, e->recorder);
    return pto_stand(process, step, site, PTO_STUCK_EVENT, e->number, position, e->recorder);
}

/* Wait for a record that has been made. Returns a status. */
static inline int32_t pto_pass_event(pto_pipeline *p, const pto_event *e, const pto_process *process, int32_t site, int64_t position,
                                     int64_t *after)
{
    int64_t node = pto_hold(p, process, PTO_EDGE_EVENT, PTO_STALL_EVENT, site, &e->nodes[position], 1, *after, 0);
    if (node < 0)
        return p->sink->status;
    *after = node;
    p->n_steps++;
    return PTO_OK;
}

/* ---- a whole pipeline ---- */

/* A process has done its last statement: the stream has nothing more to submit. Returns a status. */
static inline int32_t pto_end_process(pto_pipeline *p, pto_process *process)
{
    process->step = PTO_ENDED;
    const pto_mark mark = {.stream = process->stream, .flags = PTO_MARK_RESTS, .site = -1};
    process->end = p->sink->mark(p->sink, &mark);
    return p->sink->status;
}

/* Report what every process that has not ended stands at. */
static __attribute__((cold, noinline, unused)) int32_t pto_report_stuck(pto_pipeline *p)
{
    pto_stuck *rows = malloc((size_t)p->n_processes * sizeof *rows);
    if (rows == NULL)
        return p->sink->status = PTO_E_NOMEM;
    int32_t n = 0;
    for (int32_t k = 0; k < p->n_processes; ++k)
        if (p->processes[k]->step != PTO_ENDED)
            rows[n++] = p->processes[k]->stands;
    p->sink->stuck(p->sink, rows, n);
    free(rows);
    return p->sink->status;
}

/* What a process does from where it stands: the generated function of it. Returns a status. */
typedef int32_t (*pto_process_fn)(void *run, pto_process *process);

/* A process with all its replicas. A frame begins with a pto_process and is all zeros before the first call. */
typedef struct pto_process_kind {
    pto_process_fn function;
    int64_t frame_bytes;
    int32_t replicas;
    int32_t reserved;
} pto_process_kind;

static inline void pto_free_pipeline(pto_pipeline *p)
{
    for (int32_t k = 0; k < p->n_channels; ++k) {
        free(p->channels[k].tokens);
        free(p->channels[k].payload);
    }
    for (int32_t k = 0; k < p->n_events; ++k)
        free(p->events[k].nodes);
    if (p->processes != NULL)
        for (int32_t k = 0; k < p->n_processes; ++k)
            free(p->processes[k]);
    free(p->processes);
}

/* Make the frames; streams are numbered on from the pipeline's first. */
static inline int32_t pto_make_processes(pto_pipeline *p, const pto_process_kind *kinds, int32_t n_kinds)
{
    for (int32_t k = 0; k < n_kinds; ++k)
        p->n_processes += kinds[k].replicas;
    p->processes = calloc((size_t)p->n_processes + 1, sizeof *p->processes);
    if (p->processes == NULL)
        return p->sink->status = PTO_E_NOMEM;
    int32_t at = 0;
    for (int32_t k = 0; k < n_kinds; ++k)
        for (int32_t replica = 0; replica < kinds[k].replicas; ++replica, ++at) {
            p->processes[at] = calloc(1, (size_t)kinds[k].frame_bytes);
            if (p->processes[at] == NULL)
                return p->sink->status = PTO_E_NOMEM;
            p->processes[at]->stream = p->first_stream + at;
            p->processes[at]->replica = replica;
        }
    return PTO_OK;
}

/* A join of a node of every process: of its mark at the end, or (with structure) of what its end waits for, where that is not `after`. */
static inline int64_t pto_join_processes(pto_pipeline *p, int of_marks, int64_t after)
{
    pto_sink *sink = p->sink;
    int64_t join = sink->join_open(sink);
    for (int32_t k = 0; k < p->n_processes && join >= 0; ++k) {
        int64_t node = of_marks ? p->processes[k]->end : p->processes[k]->after;
        if ((of_marks || node != after) && sink->join_add(sink, join, node) != PTO_OK)
            return -1;
    }
    return join < 0 ? -1 : sink->join_close(sink, join, after);
}

/* Call each process in turn until all have ended. Returns a status. */
static inline int32_t pto_take_turns(pto_pipeline *p, const pto_process_kind *kinds, void *run)
{
    for (int32_t n_open = p->n_processes; n_open > 0;) {
        int64_t n_steps = p->n_steps;
        int32_t at = 0;
        for (const pto_process_kind *kind = kinds; at < p->n_processes; ++kind)
            for (int32_t replica = 0; replica < kind->replicas; ++replica, ++at) {
                pto_process *process = p->processes[at];
                if (process->step == PTO_ENDED)
                    continue;
                if (kind->function(run, process) != PTO_OK || p->sink->status != PTO_OK)
                    return p->sink->status;
                if (process->step == PTO_ENDED) {
                    --n_open;
                    ++p->n_steps;
                }
            }
        if (p->n_steps == n_steps && n_open > 0)
            return pto_report_stuck(p);
    }
    for (int32_t k = 0; k < p->n_channels; ++k) {
        const pto_channel *c = &p->channels[k];
        if (c->n_sent - c->n_received <= c->initial)
            continue;
        const pto_token *token = &c->tokens[c->n_received % c->capacity];
        const pto_process sender = {.stream = token->stream};
        pto_never(p, &sender, token->site, PTO_STUCK_LOST, c->number, c->n_received, -1);
        return p->sink->status;
    }
    return PTO_OK;
}

/* A pipeline before its start. */
static inline pto_pipeline pto_open_pipeline(pto_sink *sink, pto_channel *channels, int32_t n_channels, pto_event *events,
                                             int32_t n_events, int32_t first_stream, int32_t structure)
{
    return (pto_pipeline){.sink = sink, .channels = channels, .events = events, .n_channels = n_channels, .n_events = n_events,
                          .first_stream = first_stream, .structure = structure};
}

/* Run a pipeline where the main program stands: its stream rests until all processes have nothing more to submit. *after is the node
   that they all wait for, and becomes that of their ends (structure). Returns a status. */
static __attribute__((unused)) int32_t pto_run_pipeline(pto_pipeline *p, const pto_process_kind *kinds, int32_t n_kinds, void *run,
                                                        int64_t *after)
{
    pto_sink *sink = p->sink;
    if (pto_make_processes(p, kinds, n_kinds) == PTO_OK) {
        const pto_mark fork = {.flags = PTO_MARK_RESTS, .site = -1};
        int64_t started = sink->mark(sink, &fork);
        for (int32_t k = 0; k < p->n_processes; ++k) {
            const pto_mark begin = {.stream = p->processes[k]->stream, .flags = PTO_MARK_BLOCKS, .why = PTO_EDGE_ORDER, .site = -1,
                                    .n_before = 1, .before = &started};
            p->processes[k]->after = *after;
            sink->mark(sink, &begin);
        }
    }
    if (sink->status == PTO_OK && pto_take_turns(p, kinds, run) == PTO_OK) {
        int64_t ended = pto_join_processes(p, 1, -1);
        const pto_mark join = {.flags = PTO_MARK_BLOCKS, .why = PTO_EDGE_ORDER, .site = -1, .n_before = 1, .before = &ended};
        sink->mark(sink, &join);
        if (p->structure && sink->status == PTO_OK)
            *after = pto_join_processes(p, 0, *after);
    }
    pto_free_pipeline(p);
    return sink->status;
}

#endif
