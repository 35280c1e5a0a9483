/* graph.c: successors of a record's nodes in CSR form, built once per content and reused by every run of it. */
#include "internal.h"

void pto_graph_free(pto_graph *graph)
{
    free(graph->nodes);
    free(graph->succ);
    free(graph->ready);
    memset(graph, 0, sizeof *graph);
}

/* Of the nodes from `begin` on. Returns PTO_E_DEADLOCK for a predecessor that is not earlier: such a graph might have a cycle. */
int32_t pto_graph_build(pto_graph *graph, const pto_columns *c, int64_t begin)
{
    int64_t n = c->n_nodes - begin, first = c->first_node + begin;
    const int64_t *pred_begin = c->pred_begin + begin;
    if (n >= UINT32_MAX)
        return PTO_E_NOMEM;
    if (!PTO_RESERVE(graph->nodes, graph->nodes_capacity, n + 2) ||
        !PTO_RESERVE(graph->succ, graph->succ_capacity, c->n_edges - pred_begin[0]) ||
        !PTO_RESERVE(graph->ready, graph->ready_capacity, n))
        return PTO_E_NOMEM;

    pto_graph_node *nodes = graph->nodes;
    graph->begin = begin;
    graph->n_nodes = n;
    graph->n_ready = 0;
    graph->max_preds = 0;
    for (int64_t i = 0; i <= n + 1; i++)
        nodes[i] = (pto_graph_node){.kernel = -1};
    for (int64_t i = 0; i < n; i++) {
        uint32_t n_preds = 0;
        for (int64_t e = pred_begin[i]; e < pred_begin[i + 1]; e++) {
            int64_t src = c->edge_src[e] - first;
            if (src >= i)
                return PTO_E_DEADLOCK;
            if (src < 0)
                continue;
            nodes[src + 2].succ++;      /* two ahead: after the sum it is the begin, after filling the end */
            n_preds++;
        }
        nodes[i].n_preds = n_preds;
        if (n_preds > graph->max_preds)
            graph->max_preds = n_preds;
        if (n_preds == 0)
            graph->ready[graph->n_ready++] = (uint32_t)i;
        int64_t task = c->node_task[begin + i];
        if (task >= 0) {
            nodes[i].kernel = c->task_kernel[task];
            nodes[i].arg = c->arg_begin[task];
            nodes[i].scalar = c->scalar_begin[task];
        }
    }
    for (int64_t i = 2; i <= n + 1; i++)
        nodes[i].succ += nodes[i - 1].succ;
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = pred_begin[i]; e < pred_begin[i + 1]; e++) {
            int64_t src = c->edge_src[e] - first;
            if (src >= 0)
                graph->succ[nodes[src + 1].succ++] = (uint32_t)i;
        }
    return PTO_OK;
}
