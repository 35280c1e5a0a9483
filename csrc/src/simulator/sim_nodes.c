/* sim_nodes.c: the nodes in flight, see sim_nodes.h. */
#include "sim_nodes.h"

#define MIN_CHAINS ((int64_t)1 << 20)

void pto_sim_nodes_init(pto_sim_nodes *nodes, bool keeps_weights)
{
    *nodes = (pto_sim_nodes){.links_free = -1, .chain_limit = MIN_CHAINS, .keeps_weights = keeps_weights};
}

bool pto_sim_nodes_grow(pto_sim_nodes *nodes)
{
    int64_t grown = nodes->capacity == 0 ? 256 : 2 * nodes->capacity;
    pto_sim_node *rows = malloc((size_t)grown * sizeof *rows);
    pto_sim_more *more = nodes->keeps_more ? malloc((size_t)grown * sizeof *more) : NULL;
    int64_t *weights = nodes->keeps_weights ? malloc((size_t)grown * PTO_N_WINDOWS * sizeof *weights) : NULL;
    pto_sim_route *routes = nodes->keeps_routes ? malloc((size_t)grown * sizeof *routes) : NULL;
    if (rows == NULL || (nodes->keeps_more && more == NULL) || (nodes->keeps_weights && weights == NULL) ||
        (nodes->keeps_routes && routes == NULL)) {
        free(rows);
        free(more);
        free(weights);
        free(routes);
        return false;
    }
    for (int64_t node = nodes->first; node < nodes->next; node++) {
        rows[node & (grown - 1)] = *pto_sim_at(nodes, node);
        if (more != NULL)
            more[node & (grown - 1)] = pto_sim_more_of(nodes, node);
        if (routes != NULL)
            routes[node & (grown - 1)] = *pto_sim_route_of(nodes, node);
        if (weights != NULL)
            memcpy(weights + (node & (grown - 1)) * PTO_N_WINDOWS, nodes->weights + (node & (nodes->capacity - 1)) * PTO_N_WINDOWS,
                   PTO_N_WINDOWS * sizeof *weights);
    }
    free(nodes->rows);
    free(nodes->more);
    free(nodes->weights);
    free(nodes->routes);
    nodes->rows = rows;
    nodes->more = more;
    nodes->weights = weights;
    nodes->routes = routes;
    nodes->capacity = grown;
    return true;
}

bool pto_sim_nodes_keep_more(pto_sim_nodes *nodes)
{
    nodes->keeps_more = true;
    if (nodes->more == NULL && nodes->capacity > 0)
        nodes->more = calloc((size_t)nodes->capacity, sizeof *nodes->more);
    return nodes->more != NULL || nodes->capacity == 0;
}

/* Make a place for the chain of the next node: at the limit, the oldest chain makes room. */
bool pto_sim_chain_grow(pto_sim_nodes *nodes)
{
    int64_t node = nodes->next;
    if (nodes->chain_capacity >= nodes->chain_limit) {
        nodes->chain_first = node + 1 - nodes->chain_capacity;
        return true;
    }
    int64_t grown = nodes->chain_capacity == 0 ? 1024 : 2 * nodes->chain_capacity;
    int64_t *chain = malloc((size_t)grown * sizeof *chain);
    pto_sim_place *places = nodes->keeps_places ? malloc((size_t)grown * sizeof *places) : NULL;
    if (chain == NULL || (nodes->keeps_places && places == NULL)) {
        free(chain);
        free(places);
        return false;
    }
    for (int64_t i = nodes->chain_first; i < node; i++) {
        chain[i & (grown - 1)] = pto_sim_chain_of(nodes, i);
        if (places != NULL)
            places[i & (grown - 1)] = *pto_sim_place_of(nodes, i);
    }
    free(nodes->chain);
    free(nodes->places);
    nodes->chain = chain;
    nodes->places = places;
    nodes->chain_capacity = grown;
    return true;
}

void pto_sim_nodes_close(pto_sim_nodes *nodes)
{
    free(nodes->rows);
    free(nodes->more);
    free(nodes->weights);
    free(nodes->routes);
    free(nodes->links);
    free(nodes->chain);
    free(nodes->places);
}
