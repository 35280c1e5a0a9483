/* graph.c: successors of a record's nodes in CSR form, built once per content and reused by every run of it.

   Gates stand behind the nodes, each an edge from the one before. What follows is left out: an edge to a gate from a node that another one
   before the gate waits for, and an edge from it to a node that waits for another one behind it. */
#include "graph.h"

#include "../collections/array.h"

#define NO_SUCC UINT32_MAX

void pto_graph_free(pto_graph *graph)
{
    free(graph->nodes);
    free(graph->succ);
    free(graph->ready);
    free(graph->gate_end);
    free(graph->first_succ);
    free(graph->list);
    free(graph->list_end);
    memset(graph, 0, sizeof *graph);
}

/* Enter an edge: count it first, then, with the sums made, put it in place. Two ahead: after the sum it is the begin, after filling the
   end. */
static inline void enter(pto_graph *graph, int64_t src, int64_t dst, bool fills)
{
    if (fills) {
        graph->succ[graph->nodes[src + 1].succ++] = (uint32_t)dst;
    } else {
        graph->nodes[src + 2].succ++;
        graph->nodes[dst].n_preds++;
    }
}

static bool waits_since(const pto_columns *c, int64_t begin, int64_t i, int64_t from)
{
    for (int64_t e = c->pred_begin[begin + i]; e < c->pred_begin[begin + i + 1]; e++)
        if (c->edge_src[e] - c->first_node - begin >= from)
            return true;
    return false;
}

/* The edges to and from gates, in the order that every pass takes them. */
static void enter_gates(pto_graph *graph, const pto_columns *c, const pto_gate *gates, int64_t n_gates, bool fills)
{
    int64_t first = c->first_node + graph->begin, n = graph->n_own, covered = 0;
    for (int64_t k = 0; k < n_gates; k++) {
        int64_t before = gates[k].before - first, from = gates[k].from - first;
        int64_t until = k + 1 < n_gates ? gates[k + 1].from - first : n;
        graph->gate_end[k] = before;
        if (k > 0)
            enter(graph, n + k - 1, n + k, fills);
        for (; covered < before; covered++)
            if (graph->first_succ[covered] >= before)
                enter(graph, covered, n + k, fills);
        for (int64_t i = from < 0 ? 0 : from; i < until; i++)
            if (!waits_since(c, graph->begin, i, from))
                enter(graph, n + k, i, fills);
    }
}

static bool reserve(pto_graph *graph, const pto_columns *c, int64_t n, int64_t n_gates, int64_t begin)
{
    int64_t n_edges = c->n_edges - c->pred_begin[begin] + (n_gates > 0 ? 2 * n + n_gates : 0);
    return PTO_RESERVE(graph->nodes, graph->nodes_capacity, n + n_gates + 2) &&
           PTO_RESERVE(graph->succ, graph->succ_capacity, n_edges) && PTO_RESERVE(graph->ready, graph->ready_capacity, n) &&
           PTO_RESERVE(graph->gate_end, graph->gates_capacity, n_gates) &&
           (n_gates == 0 || PTO_RESERVE(graph->first_succ, graph->first_succ_capacity, n));
}

/* Of the nodes from `begin` on. Returns PTO_E_DEADLOCK for a predecessor that is not earlier: such a graph might have a cycle. */
int32_t pto_graph_build(pto_graph *graph, const pto_columns *c, const pto_gate *gates, int64_t n_gates, int64_t begin)
{
    int64_t n = c->n_nodes - begin, first = c->first_node + begin;
    const int64_t *pred_begin = c->pred_begin + begin;
    while (n_gates > 0 && gates[0].before <= first)
        gates++, n_gates--;
    if (n + n_gates >= UINT32_MAX || !reserve(graph, c, n, n_gates, begin))
        return PTO_E_NOMEM;

    pto_graph_node *nodes = graph->nodes;
    graph->begin = begin;
    graph->n_own = n;
    graph->n_nodes = n + n_gates;
    graph->n_ready = 0;
    graph->max_preds = 0;
    graph->list_threads = 0;
    for (int64_t i = 0; i <= graph->n_nodes + 1; i++)
        nodes[i] = (pto_graph_node){.kernel = -1};
    for (int64_t i = 0; n_gates > 0 && i < n; i++)
        graph->first_succ[i] = NO_SUCC;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t e = pred_begin[i]; e < pred_begin[i + 1]; e++) {
            int64_t src = c->edge_src[e] - first;
            if (src >= i)
                return PTO_E_DEADLOCK;
            if (src < 0)
                continue;
            enter(graph, src, i, false);
            if (n_gates > 0 && graph->first_succ[src] == NO_SUCC)
                graph->first_succ[src] = (uint32_t)i;
        }
        int64_t task = c->node_task[begin + i];
        if (task >= 0) {
            nodes[i].kernel = c->task_kernel[task];
            nodes[i].arg = c->arg_begin[task];
            nodes[i].scalar = c->scalar_begin[task];
        }
    }
    enter_gates(graph, c, gates, n_gates, false);
    for (int64_t i = 0; i < graph->n_nodes; i++) {
        if (nodes[i].n_preds > graph->max_preds)
            graph->max_preds = nodes[i].n_preds;
        if (nodes[i].n_preds == 0 && i < n)
            graph->ready[graph->n_ready++] = (uint32_t)i;
    }
    for (int64_t i = 2; i <= graph->n_nodes + 1; i++)
        nodes[i].succ += nodes[i - 1].succ;
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = pred_begin[i]; e < pred_begin[i + 1]; e++) {
            int64_t src = c->edge_src[e] - first;
            if (src >= 0)
                enter(graph, src, i, true);
        }
    enter_gates(graph, c, gates, n_gates, true);
    return PTO_OK;
}
