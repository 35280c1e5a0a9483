/* sim_front.h: the front of a simulation: its streams, and what keeps each stream from submitting its next node.

   Each stream submits in its own order, as early as its window has room, no mark blocks it and it is not busy with the task before
   (submit_cycles). Room frees when a task and all earlier ones of its stream have completed. A stream is open from its first node on,
   except between a mark that rests and its next node.

   Ownership: pto_sim owns the front, the front owns its arrays; options, clock, nodes and trace are pto_sim's. Units: times in cycles;
   room in the unit of the window (tasks, bytes or entries). */
#ifndef PTO_SIM_FRONT_H
#define PTO_SIM_FRONT_H
#include "sim_nodes.h"
#include "sim_trace.h"

#pragma GCC visibility push(hidden)

typedef enum pto_sim_holder { PTO_SIM_FREE, PTO_SIM_BY_WINDOW, PTO_SIM_BY_MARK, PTO_SIM_BY_SUBMIT } pto_sim_holder;

/* Nodes of a stream from `first` to `last` are a list by follower; from `next` on they have not been submitted. */
typedef struct pto_sim_stream {
    int64_t first;             /* the oldest task not completed, or next; -1: none */
    int64_t next, last;        /* next is -1 when all have been submitted */
    int64_t occupied;          /* room of its window that tasks take which are submitted and not retired */
    int64_t needs;             /* room that its next task needs, while the window holds it */
    int64_t since;             /* when it was held */
    int64_t chain;             /* longest chain up to the last mark that blocked it */
    int64_t mark;              /* the mark that holds it */
    int64_t held_by;           /* what held it until it last went on, by `why` */
    pto_sim_holder hold;
    uint8_t why;               /* PTO_HELD_WINDOW, _MARK, _SUBMIT; _NOT: nothing yet */
    bool is_open;
    bool is_listed;            /* in front->to_submit */
} pto_sim_stream;

typedef struct pto_sim_front {
    const pto_sim_options *options;
    pto_sim_clock *clock;
    pto_sim_nodes *nodes;
    pto_sim_trace *trace;
    pto_sim_stream *streams;   /* [n_streams] */
    int64_t n_streams, streams_capacity;
    int64_t n_open, n_open_held;
    int32_t *to_submit;        /* [n_streams] streams that may go on */
    int64_t n_to_submit, to_submit_capacity;
    int64_t window_limit;      /* what a stream waits for room in; INT64_MAX: it never waits */
    int64_t n_overflows;       /* streams held by a window that is to end the simulation once time goes on */
    int64_t window_stalls, window_stall_cycles, window_high_water;
    int64_t stalls[PTO_N_STALLS], stall_cycles[PTO_N_STALLS];
} pto_sim_front;

void pto_sim_front_init(pto_sim_front *front, const pto_sim_options *options, pto_sim_clock *clock, pto_sim_nodes *nodes,
                        pto_sim_trace *trace);
pto_sim_stream *pto_sim_front_open(pto_sim_front *front, int32_t stream);              /* NULL: no memory */
void pto_sim_front_rest(pto_sim_front *front, pto_sim_stream *f);
void pto_sim_front_hold(pto_sim_front *front, pto_sim_stream *f, pto_sim_holder by);
void pto_sim_front_hold_by_window(pto_sim_front *front, pto_sim_stream *f, int64_t weight);    /* until a task of `weight` has room */
bool pto_sim_front_hold_by_submission(pto_sim_front *front, pto_sim_stream *f);        /* for submit_cycles; false: no memory */
void pto_sim_front_free_room(pto_sim_front *front, pto_sim_stream *f);     /* of all tasks that are done from the oldest on */
void pto_sim_front_pass_mark(pto_sim_front *front, pto_sim_stream *f, int64_t node);   /* a mark has completed */
void pto_sim_front_wake(pto_sim_front *front);             /* streams that are no longer busy with a task go on */
bool pto_sim_front_overflow(pto_sim_front *front, int64_t n_tasks);        /* fail for a window that is held and may not be: false */
int64_t pto_sim_front_weigh(const pto_sim_front *front, const pto_columns *c, int64_t task);   /* unless all weigh 1 */
void pto_sim_front_close(pto_sim_front *front);

static inline pto_sim_stream *pto_sim_front_stream(pto_sim_front *front, int32_t stream)       /* opened; NULL: no memory */
{
    if (__builtin_expect(stream < front->n_streams && front->streams[stream].is_open, 1))
        return &front->streams[stream];
    return pto_sim_front_open(front, stream);
}

static inline int64_t pto_sim_front_weight(const pto_sim_front *front, int64_t node)   /* of a task */
{
    return front->nodes->weights == NULL ? 1 : front->nodes->weights[node & (front->nodes->capacity - 1)];
}

/* For room. What is occupied is within the limit: a task that takes nothing never waits. */
static inline bool pto_sim_front_must_wait(const pto_sim_front *front, const pto_sim_stream *f, int64_t weight)
{
    return weight > front->window_limit - f->occupied;
}

/* Put a node behind the others of its stream. A node that `first` has passed may have left the ring: only a list that is not empty is
   linked to. */
static inline void pto_sim_front_append(pto_sim_front *front, pto_sim_stream *f, int64_t node)
{
    if (f->first < 0)
        f->first = node;
    else
        pto_sim_at(front->nodes, f->last)->follower = node;
    f->last = node;
    if (f->next < 0)
        f->next = node;
}

static inline pto_sim_stream *pto_sim_front_next(pto_sim_front *front)         /* a stream that may go on, off the list; NULL: none */
{
    if (front->n_to_submit == 0)
        return NULL;
    pto_sim_stream *f = &front->streams[front->to_submit[--front->n_to_submit]];
    f->is_listed = false;
    return f;
}

static inline bool pto_sim_front_take_room(pto_sim_front *front, pto_sim_stream *f, int64_t node)      /* false: more than 64 bits hold */
{
    const pto_sim_options *o = front->options;
    int64_t weight = pto_sim_front_weight(front, node);
    if (o->window_mode == PTO_WINDOW_BENCHMARK && o->window > 0 && weight > 0)
        front->window_stalls += weight > o->window - f->occupied;
    if (__builtin_add_overflow(f->occupied, weight, &f->occupied))
        return pto_sim_fail_at(front->clock, PTO_E_ARGUMENT, pto_sim_at(front->nodes, node)->task);
    if (f->occupied > front->window_high_water)
        front->window_high_water = f->occupied;
    return true;
}

#pragma GCC visibility pop

#endif
