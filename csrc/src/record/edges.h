/* edges.h: collect the predecessors of one node. The record owns one pto_edges and uses the same one for every node. */
#ifndef PTO_EDGES_H
#define PTO_EDGES_H
#include "../collections/array.h"

#pragma GCC visibility push(hidden)

typedef struct pto_edge {
    int64_t src;
    int32_t arg;
    uint16_t why;
} pto_edge;

typedef struct pto_edges {
    pto_edge *data;
    pto_edge *spare;           /* merge sort's other half, same capacity */
    int64_t n;
    int64_t capacity;
    int64_t spare_capacity;
} pto_edges;

void pto_edges_free(pto_edges *edges);

static inline bool pto_edges_add(pto_edges *edges, int64_t src, int32_t why, int32_t arg)
{
    if (!PTO_RESERVE(edges->data, edges->capacity, edges->n + 1))
        return false;
    edges->data[edges->n++] = (pto_edge){src, arg, (uint16_t)why};
    return true;
}

bool pto_edges_merge(pto_edges *edges);    /* ascending by src, one edge a source with all its reasons */

#pragma GCC visibility pop

#endif
