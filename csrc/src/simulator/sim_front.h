/* sim_front.h: the front of a simulation: its streams, and what keeps each stream from submitting its next node.

   Each stream submits in its own order, as early as its windows have room, no mark blocks it and it is not busy with the task before
   (submit_cycles). Room frees when a task and all earlier ones of its stream have completed; that of ready tasks when an executor takes
   one. A stream is open from its first node on, except between a mark that rests and its next node.

   Ownership: pto_sim owns the front, the front owns its arrays; options, clock, nodes and trace are pto_sim's. Units: times in cycles;
   room in the unit of each window. */
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
    int64_t occupied[PTO_N_WINDOWS];   /* room of its windows that tasks take; of ready tasks: n_ready at the last count, and those
                                          submitted since, which may turn out to be ready */
    int64_t n_ready;           /* tasks that are ready and released, and that nobody has taken */
    int64_t last_taken;        /* a task */
    int64_t needs[PTO_N_WINDOWS];      /* room that its next task needs, while a window holds it; 1 of tasks where tasks alone are counted */
    int64_t since;             /* when it was held, by this window */
    int64_t chain;             /* longest chain up to the last mark that blocked it */
    int64_t mark;              /* the mark that holds it */
    int64_t held_by;           /* what held it until it last went on, by `why` */
    pto_sim_holder hold;
    int32_t window;            /* the unit of the window that holds it */
    uint8_t why;               /* PTO_HELD_MARK, _SUBMIT, or of a window; _NOT: nothing yet */
    bool overflows;            /* a window without room may not hold it, or does so in vain */
    bool is_open;
    bool is_listed;            /* in front->to_submit */
    bool is_to_count;          /* in front->to_count */
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
    pto_window windows[PTO_N_WINDOWS];         /* by unit; size 0: none */
    int64_t limit[PTO_N_WINDOWS];      /* what a stream waits for room in; INT64_MAX: it never waits */
    int32_t kept[PTO_N_WINDOWS], n_kept;       /* units that are counted, ascending */
    bool counts_ready;
    int32_t *to_count;         /* [n_streams] streams whose ready tasks may not be as many as counted last */
    int64_t n_to_count, to_count_capacity;
    int64_t n_overflows;       /* streams that are held and overflow a window: that ends the simulation once time goes on */
    bool has_let_go;           /* of a stream, since the flag was cleared */
    pto_window_use use[PTO_N_WINDOWS];
    int64_t failed_window, failed_need;        /* -1, 0: none has */
    int64_t stalls[PTO_N_STALLS], stall_cycles[PTO_N_STALLS];
} pto_sim_front;

void pto_sim_front_init(pto_sim_front *front, const pto_sim_options *options, pto_sim_clock *clock, pto_sim_nodes *nodes,
                        pto_sim_trace *trace);
pto_sim_stream *pto_sim_front_open(pto_sim_front *front, int32_t stream);              /* NULL: no memory */
void pto_sim_front_rest(pto_sim_front *front, pto_sim_stream *f);
void pto_sim_front_hold(pto_sim_front *front, pto_sim_stream *f, pto_sim_holder by);
/* Hold the stream until a task that needs so much, [PTO_N_WINDOWS], has room. */
void pto_sim_front_hold_by_window(pto_sim_front *front, pto_sim_stream *f, const int64_t *needs);
bool pto_sim_front_hold_by_submission(pto_sim_front *front, pto_sim_stream *f);        /* for submit_cycles; false: no memory */
void pto_sim_front_free_room(pto_sim_front *front, pto_sim_stream *f);     /* of all tasks that are done from the oldest on */
void pto_sim_front_pass_mark(pto_sim_front *front, pto_sim_stream *f, int64_t node);   /* a mark has completed */
void pto_sim_front_wake(pto_sim_front *front);             /* streams that are no longer busy with a task go on */
bool pto_sim_front_overflow(pto_sim_front *front, int64_t n_tasks);        /* fail for a window that is held and may not be: false */
/* What a task with n_src edges needs of the windows that count more than tasks: needs, [PTO_N_WINDOWS]. */
void pto_sim_front_weigh(const pto_sim_front *front, const pto_columns *c, int64_t task, int64_t n_src, int64_t *needs);
bool pto_sim_front_must_wait_by_rules(const pto_sim_front *front, const pto_sim_stream *f, const int64_t *needs);
bool pto_sim_front_take_room(pto_sim_front *front, pto_sim_stream *f, int64_t node);   /* false: more than 64 bits hold */
void pto_sim_front_ready(pto_sim_front *front, int64_t node, bool is_taken);    /* a task is ready and released, or was taken */
void pto_sim_front_count_ready_of_streams(pto_sim_front *front);       /* of those in to_count */
void pto_sim_front_close(pto_sim_front *front);

static inline pto_sim_stream *pto_sim_front_stream(pto_sim_front *front, int32_t stream)       /* opened; NULL: no memory */
{
    if (__builtin_expect(stream < front->n_streams && front->streams[stream].is_open, 1))
        return &front->streams[stream];
    return pto_sim_front_open(front, stream);
}

/* What a task takes of each window, [PTO_N_WINDOWS]; NULL: as every task, 1 of a window of tasks. */
static inline int64_t *pto_sim_front_weights(const pto_sim_front *front, int64_t node)
{
    pto_sim_nodes *nodes = front->nodes;
    return nodes->weights == NULL ? NULL : nodes->weights + (node & (nodes->capacity - 1)) * PTO_N_WINDOWS;
}

/* For room. What is occupied is within the limit: a task that takes nothing never waits. needs is NULL where only tasks are counted. */
static inline bool pto_sim_front_must_wait(const pto_sim_front *front, const pto_sim_stream *f, const int64_t *needs)
{
    if (needs == NULL)
        return f->occupied[PTO_WINDOW_TASKS] >= front->limit[PTO_WINDOW_TASKS];
    return pto_sim_front_must_wait_by_rules(front, f, needs);
}

/* Count the ready tasks of streams again. At two times alone, so that the order in which streams submit at a time changes nothing:
   once what ends then has ended, and once executors have taken tasks. */
static inline void pto_sim_front_count_ready(pto_sim_front *front)
{
    if (__builtin_expect(front->n_to_count > 0, 0))
        pto_sim_front_count_ready_of_streams(front);
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

#pragma GCC visibility pop

#endif
