/* sim_nodes.h: the nodes in flight (fed and not all completed), their successors, and the critical path.

   Nodes live in a ring indexed by node id modulo a power of two, which grows with the nodes in flight, not with the stream; links between
   nodes are ids, so growing moves nothing else. Ownership: pto_sim owns pto_sim_nodes, which owns its arrays. Units: costs and times in
   cycles. */
#ifndef PTO_SIM_NODES_H
#define PTO_SIM_NODES_H
#include "../collections/array.h"
#include "pto_wsp.h"
#include "sim_clock.h"

#pragma GCC visibility push(hidden)

/* The state of a node. QUEUED: the stream has not submitted the node. WAITING: a predecessor has not completed. READY: all predecessors
   have completed; for a mark, only the delay of the mark is left. DONE: the node has completed. */
enum { PTO_SIM_QUEUED, PTO_SIM_WAITING, PTO_SIM_READY, PTO_SIM_DONE };

#define PTO_SIM_RELEASED 1     /* pto_sim_node.flags of a task: timing lets it run once it is READY */

/* As large as a cache line. */
typedef struct pto_sim_node {
    int64_t task;              /* -1: a join or mark */
    int64_t cost;              /* of a mark: its delay */
    int64_t ready;             /* time from which it may run, once READY and released; of a mark: when its last structural
                                  predecessor so far completed */
    int64_t next;              /* node: in its executor's queue, in the backlog, or in the list of nodes to complete */
    int64_t follower;          /* the next node of its stream, -1: none yet */
    int32_t first_link, last_link;     /* successors, in submission order */
    int32_t n_pending;         /* predecessors not completed */
    int32_t queue;             /* of a task: where it stands when it is ready */
    int32_t stream;            /* -1: a join, which has no place in a stream */
    uint8_t state;
    uint8_t flags;             /* of a mark: PTO_MARK_; of a task: PTO_SIM_RELEASED */
    uint8_t stall;
    uint8_t reserved;
} pto_sim_node;

/* What only some schedules say of a task. */
typedef struct pto_sim_more {
    int64_t priority;
    int64_t bytes;
    int64_t lane_class;        /* interleaving: the class of lanes that takes turns with the others */
} pto_sim_more;

/* Of a copy over several links. */
typedef struct pto_sim_route {
    int32_t target;            /* the rank that it goes to, -1: the task takes no link, or one alone */
    int32_t n_links;           /* of its route, at least 1 */
    int32_t from;              /* the queue of the link whose buffer has it, -1: none */
    int32_t held_by;           /* the task on the link that it waited for, -1: none */
    int64_t ready;             /* when it came to the link */
} pto_sim_route;

typedef struct pto_sim_link {
    int64_t node;              /* the successor */
    int32_t next;              /* also the free list; under way: how many nodes before the successor the source stands */
    bool is_order;             /* into a mark, for no other reason than structure */
} pto_sim_link;

/* Where a task ran, and since when others see that. */
typedef struct pto_sim_place {
    int64_t completed;         /* -1: it has not */
    int32_t worker;            /* -1: a node that is at no place */
} pto_sim_place;

typedef struct pto_sim_nodes {
    pto_sim_node *rows;        /* [capacity] */
    pto_sim_more *more;        /* [capacity]; NULL unless keeps_more */
    bool keeps_more;
    int64_t *weights;          /* [capacity][PTO_N_WINDOWS] room that a task takes of its windows; NULL unless keeps_weights: 1 of tasks */
    bool keeps_weights;
    pto_sim_route *routes;     /* [capacity]; NULL unless keeps_routes */
    bool keeps_routes;
    int64_t capacity;
    int64_t first;             /* all nodes before it have completed */
    int64_t next;              /* the id that comes next */
    pto_sim_link *links;
    int64_t n_links, links_capacity;
    int32_t links_free;        /* -1: none */
    int64_t *chain;            /* by node id modulo a power of two: cycles of the longest chain that ends in a node */
    pto_sim_place *places;     /* as many as chains, likewise; NULL unless keeps_places */
    bool keeps_places;
    int64_t hop_cycles, grid_columns;      /* of pto_sim_options */
    int64_t chain_capacity, chain_limit, chain_first;
    int64_t critical_path;
} pto_sim_nodes;

/* What the feed says of a node. */
typedef struct pto_sim_fed {
    int64_t task;              /* -1: a join or mark */
    int64_t cost;
    int32_t stream;            /* -1: none */
    const int64_t *src;        /* [n_src] predecessors */
    int64_t n_src;
    const uint16_t *why;       /* [n_src] of a mark: why it waits; NULL: nobody asks */
    int64_t chain;             /* a chain that ends before the node whatever its predecessors */
    int32_t worker;            /* with keeps_places, of a task; -1: at no place */
} pto_sim_fed;

void pto_sim_nodes_init(pto_sim_nodes *nodes, bool keeps_weights);
bool pto_sim_nodes_grow(pto_sim_nodes *nodes);                         /* false: no memory */
bool pto_sim_nodes_keep_more(pto_sim_nodes *nodes);                    /* from here on; false: no memory */
bool pto_sim_chain_grow(pto_sim_nodes *nodes);
void pto_sim_nodes_close(pto_sim_nodes *nodes);

static inline pto_sim_node *pto_sim_at(const pto_sim_nodes *nodes, int64_t node)
{
    return &nodes->rows[node & (nodes->capacity - 1)];
}

static inline pto_sim_route *pto_sim_route_of(const pto_sim_nodes *nodes, int64_t node)        /* with keeps_routes */
{
    return &nodes->routes[node & (nodes->capacity - 1)];
}

static inline pto_sim_more pto_sim_more_of(const pto_sim_nodes *nodes, int64_t node)
{
    return nodes->more == NULL ? (pto_sim_more){0} : nodes->more[node & (nodes->capacity - 1)];
}

static inline int64_t pto_sim_chain_of(const pto_sim_nodes *nodes, int64_t node)
{
    return nodes->chain[node & (nodes->chain_capacity - 1)];
}

static inline pto_sim_place *pto_sim_place_of(const pto_sim_nodes *nodes, int64_t node)
{
    return &nodes->places[node & (nodes->chain_capacity - 1)];
}

static inline int32_t pto_sim_link_new(pto_sim_nodes *nodes)       /* -1: no memory */
{
    int32_t at = nodes->links_free;
    if (at >= 0)
        nodes->links_free = nodes->links[at].next;
    else if (nodes->n_links >= INT32_MAX - 1 || !PTO_RESERVE(nodes->links, nodes->links_capacity, nodes->n_links + 1))
        return -1;
    else
        at = (int32_t)nodes->n_links++;
    return at;
}

static inline bool pto_sim_link_nodes(pto_sim_nodes *nodes, int64_t src, int64_t dst, bool is_order)       /* false: no memory */
{
    int32_t at = pto_sim_link_new(nodes);
    if (at < 0)
        return false;
    nodes->links[at] = (pto_sim_link){dst, -1, is_order};
    pto_sim_node *n = pto_sim_at(nodes, src);
    if (n->first_link < 0)
        n->first_link = at;
    else
        nodes->links[n->last_link].next = at;
    n->last_link = at;
    return true;
}

/* The time from a worker of a grid to another one. Saturates. */
static inline int64_t pto_sim_between(const pto_sim_nodes *nodes, int64_t from, int64_t to)
{
    int64_t columns = nodes->grid_columns, rows = from / columns - to / columns, across = from % columns - to % columns, cycles;
    int64_t steps = (rows < 0 ? -rows : rows) + (across < 0 ? -across : across);
    return __builtin_mul_overflow(steps, nodes->hop_cycles, &cycles) ? INT64_MAX : cycles;
}

/* The longest chain up to a task on a worker that comes over an edge from a node, which is among those whose chains are kept. */
static inline int64_t pto_sim_chain_over(const pto_sim_nodes *nodes, int64_t src, int32_t worker)
{
    int64_t chain = pto_sim_chain_of(nodes, src);
    int32_t from = nodes->keeps_places && worker >= 0 ? pto_sim_place_of(nodes, src)->worker : -1;
    return from < 0 ? chain : pto_sim_add(chain, pto_sim_between(nodes, from, worker));
}

/* Enter a node behind all others, as nodes->next - 1 then. False: no memory.
   Invariant of the loop: `longest` is the longest chain up to the predecessors seen, n_pending counts those in flight, each of which links
   to the node. A predecessor that has left the ring has completed. */
static inline __attribute__((always_inline)) bool pto_sim_enter(pto_sim_nodes *nodes, const pto_sim_fed *fed)
{
    if (nodes->next - nodes->first >= nodes->capacity && !pto_sim_nodes_grow(nodes))
        return false;
    if (nodes->next - nodes->chain_first >= nodes->chain_capacity && !pto_sim_chain_grow(nodes))
        return false;
    int64_t node = nodes->next++, longest = fed->chain;
    pto_sim_node *n = pto_sim_at(nodes, node);
    *n = (pto_sim_node){.task = fed->task, .cost = fed->cost, .next = -1, .follower = -1, .first_link = -1, .last_link = -1,
                        .stream = fed->stream};
    for (int64_t i = 0; i < fed->n_src; i++) {
        int64_t src = fed->src[i];
        int64_t chain = src >= nodes->chain_first ? pto_sim_chain_over(nodes, src, fed->worker) : 0;
        if (chain > longest)
            longest = chain;
        if (src < nodes->first || pto_sim_at(nodes, src)->state == PTO_SIM_DONE)
            continue;
        n->n_pending++;
        if (!pto_sim_link_nodes(nodes, src, node, fed->why != NULL && fed->why[i] == PTO_EDGE_ORDER))
            return false;
    }
    longest = pto_sim_add(longest, fed->cost);
    nodes->chain[node & (nodes->chain_capacity - 1)] = longest;
    if (nodes->keeps_places)
        *pto_sim_place_of(nodes, node) = (pto_sim_place){.completed = -1, .worker = fed->worker};
    if (longest > nodes->critical_path && fed->task >= 0)
        nodes->critical_path = longest;
    return true;
}

#pragma GCC visibility pop

#endif
