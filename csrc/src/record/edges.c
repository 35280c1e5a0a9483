/* edges.c: collect the predecessors of one node, then sort and merge them. */
#include "edges.h"

void pto_edges_free(pto_edges *edges)
{
    free(edges->data);
    free(edges->spare);
    memset(edges, 0, sizeof *edges);
}

/* Stable, so that of several edges from one source the first found keeps its argument pair. Lists of readers arrive in
   order, so the common long list is already sorted and never comes here. */
static bool sort_edges(pto_edges *edges)
{
    if (!PTO_RESERVE(edges->spare, edges->spare_capacity, edges->n))
        return false;
    pto_edge *from = edges->data, *to = edges->spare;
    int64_t n = edges->n;
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * run) {
            int64_t i = begin, i_end = begin + run < n ? begin + run : n;
            int64_t j = i_end, j_end = begin + 2 * run < n ? begin + 2 * run : n;
            for (int64_t out = begin; out < j_end; out++)
                to[out] = i < i_end && (j == j_end || from[i].src <= from[j].src) ? from[i++] : from[j++];
        }
        pto_edge *swap = from;
        from = to;
        to = swap;
    }
    if (from != edges->data)
        memcpy(edges->data, from, (size_t)n * sizeof *from);
    return true;
}

static void insertion_sort(pto_edge *edge, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        pto_edge moved = edge[i];
        int64_t at = i;
        for (; at > 0 && edge[at - 1].src > moved.src; at--)
            edge[at] = edge[at - 1];
        edge[at] = moved;
    }
}

bool pto_edges_merge(pto_edges *edges)
{
    if (edges->n < 2 || (edges->n == 2 && edges->data[0].src < edges->data[1].src))
        return true;
    int64_t sorted = 1;
    while (sorted < edges->n && edges->data[sorted - 1].src <= edges->data[sorted].src)
        sorted++;
    if (sorted < edges->n) {
        if (edges->n <= 24)
            insertion_sort(edges->data, edges->n);
        else if (!sort_edges(edges))
            return false;
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < edges->n; i++) {
        pto_edge *edge = &edges->data[i];
        if (kept > 0 && edges->data[kept - 1].src == edge->src) {
            pto_edge *same = &edges->data[kept - 1];
            same->why |= edge->why;
            if (same->arg < 0)
                same->arg = edge->arg;
        } else {
            edges->data[kept++] = *edge;
        }
    }
    edges->n = kept;
    return true;
}
