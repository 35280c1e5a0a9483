/* sim_queue.h: the simulator's data structures: nodes in flight, ready tasks of an executor, heaps by time.

   Nodes live in a ring indexed by node id modulo a power of two, which grows with the nodes in flight, not with the
   stream; links between them are node ids, so growing moves nothing else. */
#ifndef PTO_SIM_QUEUE_H
#define PTO_SIM_QUEUE_H
#include "../internal.h"

#pragma GCC visibility push(hidden)

/* QUEUED: its stream has not come to it. READY: all before it has completed; of a mark: only its delay is left. */
enum { PTO_SIM_QUEUED, PTO_SIM_WAITING, PTO_SIM_READY, PTO_SIM_DONE };

#define PTO_SIM_RELEASED 1     /* pto_sim_node.flags of a task: timing lets it run once it is READY */

/* As large as a cache line. */
typedef struct pto_sim_node {
    int64_t task;              /* -1: a join or mark */
    int64_t cost;              /* of a mark: its delay */
    int64_t ready;             /* time from which it may run, once READY and released; of a mark: when its last structural
                                  predecessor so far completed */
    int64_t next;              /* node: in its executor's queue, or in the list of nodes to complete */
    int64_t follower;          /* the next node of its stream, -1: none yet */
    int32_t first_link, last_link;     /* successors, in submission order */
    int32_t n_pending;         /* predecessors not completed */
    int32_t queue;             /* of a task: where it stands when it is ready */
    int32_t stream;            /* -1: a join, which has no place in one */
    uint8_t state;
    uint8_t flags;             /* of a mark: PTO_MARK_; of a task: PTO_SIM_RELEASED */
    uint8_t stall;
    uint8_t reserved;
} pto_sim_node;

/* What a schedule may say of a task beside its worker and cost. */
typedef struct pto_sim_more {
    int64_t priority;
    int64_t bytes;
    int64_t turn;              /* the class of lanes that takes turns with the others */
} pto_sim_more;

typedef struct pto_sim_ring {
    pto_sim_node *nodes;
    pto_sim_more *more;        /* as nodes; NULL unless keeps_more */
    bool keeps_more;
    int64_t capacity;
    int64_t first;             /* all nodes before it have completed */
    int64_t next;              /* the id that comes next */
} pto_sim_ring;

static inline pto_sim_node *pto_sim_at(const pto_sim_ring *ring, int64_t node)
{
    return &ring->nodes[node & (ring->capacity - 1)];
}

static inline pto_sim_more pto_sim_more_of(const pto_sim_ring *ring, int64_t node)
{
    return ring->more == NULL ? (pto_sim_more){0} : ring->more[node & (ring->capacity - 1)];
}

bool pto_sim_ring_grow(pto_sim_ring *ring);

static inline bool pto_sim_ring_reserve(pto_sim_ring *ring)        /* room for one node more */
{
    return ring->next - ring->first < ring->capacity || pto_sim_ring_grow(ring);
}

typedef struct pto_sim_entry {
    int64_t key;               /* a time */
    int64_t id;                /* breaks ties */
} pto_sim_entry;

typedef struct pto_sim_heap {
    pto_sim_entry *data;
    int64_t n;
    int64_t capacity;
} pto_sim_heap;

static inline bool pto_sim_before(pto_sim_entry a, pto_sim_entry b)
{
    return a.key < b.key || (a.key == b.key && a.id < b.id);
}

bool pto_sim_heap_push(pto_sim_heap *heap, pto_sim_entry entry);
pto_sim_entry pto_sim_heap_pop(pto_sim_heap *heap);        /* not of an empty one */

/* ---- ready tasks ---- */

/* Of ready tasks the one with the highest priority goes first, then the one that became ready first, then the lowest node. */
typedef struct pto_sim_rank {
    int64_t priority;
    int64_t ready;
    int64_t node;              /* -1: none */
} pto_sim_rank;

static inline bool pto_sim_rank_before(pto_sim_rank a, pto_sim_rank b)
{
    if (a.priority != b.priority)
        return a.priority > b.priority;
    return a.ready < b.ready || (a.ready == b.ready && a.node < b.node);
}

/* A heap of the ready tasks of one class. */
typedef struct pto_sim_turn {
    int64_t number;
    pto_sim_rank *data;
    int64_t n;
    int64_t capacity;
} pto_sim_turn;

/* Classes that have had a ready task here, ascending by number. Of the tasks with the highest priority, the first one of the class
   goes that comes next, round and round, after the one served last. Without interleaving there is one class. */
typedef struct pto_sim_turns {
    pto_sim_turn *classes;
    int64_t n;
    int64_t capacity;
    int64_t served;            /* the number of the class served last, -1: none */
} pto_sim_turns;

/* Where neither priority nor turns matter: by (ready time, node). Time never runs back, so nearly all arrive in order and form a
   list; only a task that becomes ready at the same time as a later one goes through the heap. */
typedef struct pto_sim_ready {
    int64_t first, last;       /* nodes, -1: none */
    pto_sim_heap late;
    pto_sim_turns *turns;      /* owned; NULL: the list and the heap */
} pto_sim_ready;

bool pto_sim_ready_init(pto_sim_ready *ready, bool is_ranked);      /* false: no memory */
void pto_sim_ready_free(pto_sim_ready *ready);
bool pto_sim_ready_push_apart(pto_sim_ready *ready, const pto_sim_ring *ring, int64_t node);     /* not behind the list */
int64_t pto_sim_ready_pop_apart(pto_sim_ready *ready, const pto_sim_ring *ring);
pto_sim_rank pto_sim_ready_head(const pto_sim_ready *ready, const pto_sim_ring *ring);      /* what pop would return */

static inline bool pto_sim_ready_push(pto_sim_ready *ready, const pto_sim_ring *ring, int64_t node)
{
    pto_sim_node *n = pto_sim_at(ring, node);
    n->next = -1;
    if (ready->turns != NULL)
        return pto_sim_ready_push_apart(ready, ring, node);
    if (ready->first < 0) {
        ready->first = ready->last = node;
        return true;
    }
    pto_sim_node *last = pto_sim_at(ring, ready->last);
    if (n->ready == last->ready && node < ready->last)
        return pto_sim_ready_push_apart(ready, ring, node);
    last->next = node;
    ready->last = node;
    return true;
}

static inline int64_t pto_sim_ready_pop(pto_sim_ready *ready, const pto_sim_ring *ring)    /* -1: none */
{
    if (ready->turns != NULL || ready->late.n > 0)
        return pto_sim_ready_pop_apart(ready, ring);
    int64_t node = ready->first;
    if (node >= 0)
        ready->first = pto_sim_at(ring, node)->next;
    return node;
}

#pragma GCC visibility pop

#endif
