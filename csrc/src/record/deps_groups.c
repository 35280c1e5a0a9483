/* deps_groups.c: the alias groups of the dependency map, found by their buffer; heads of chains. See deps_groups.h. */
#include "deps_groups.h"

void pto_map_clear_chains(int32_t *chains, int64_t n)
{
    if (n > 0)
        memset(chains, 0xff, (size_t)n * sizeof *chains);      /* all NONE */
}

bool pto_map_grow_chains(int32_t **chains, int64_t *size, int64_t need)
{
    if (need <= *size)
        return true;
    if (!PTO_RESERVE(*chains, *size, need))
        return false;
    pto_map_clear_chains(*chains, *size);
    return true;
}

static uint32_t group_hash(int32_t buffer)
{
    return (uint32_t)(((uint64_t)(uint32_t)buffer * 0x9e3779b97f4a7c15u) >> 32);
}

int32_t pto_map_find_group(const pto_deps *d, int32_t buffer)
{
    if (d->group_chains_size == 0)
        return NONE;
    int32_t at = d->group_chains[group_hash(buffer) & (uint32_t)(d->group_chains_size - 1)];
    while (at != NONE && d->groups[at].buffer != buffer)
        at = d->groups[at].next;
    return at;
}

static void chain_group(pto_deps *d, int32_t at)
{
    int32_t *head = &d->group_chains[group_hash(d->groups[at].buffer) & (uint32_t)(d->group_chains_size - 1)];
    d->groups[at].next = *head;
    *head = at;
}

int32_t pto_map_add_group(pto_deps *d, int32_t buffer)
{
    int64_t size = d->group_chains_size;
    if (!pto_map_grow_chains(&d->group_chains, &d->group_chains_size, d->live_groups + 1))
        return NONE;
    if (d->group_chains_size != size)
        for (int32_t i = 0; i < d->n_groups; i++)
            if (d->groups[i].n_spaces >= 0)
                chain_group(d, i);
    int32_t at = d->groups_free;
    if (at != NONE)
        d->groups_free = d->groups[at].next;
    else if (!PTO_RESERVE(d->groups, d->groups_capacity, d->n_groups + 1))
        return NONE;
    else
        at = (int32_t)d->n_groups++;
    d->groups[at] = (group){.buffer = buffer, .first_space = NONE};
    chain_group(d, at);
    d->live_groups++;
    return at;
}

void pto_map_remove_group(pto_deps *d, int32_t at)
{
    group *g = &d->groups[at];
    int32_t *link = &d->group_chains[group_hash(g->buffer) & (uint32_t)(d->group_chains_size - 1)];
    while (*link != at)
        link = &d->groups[*link].next;
    *link = g->next;
    while (g->first_space != NONE) {
        int32_t s = g->first_space;
        g->first_space = d->spaces[s].next;
        d->spaces[s].next = d->spaces_free;
        d->spaces_free = s;
    }
    g->n_spaces = -1;          /* marks a free row */
    g->next = d->groups_free;
    d->groups_free = at;
    d->live_groups--;
    if (d->last_group == at)
        d->last_group = NONE;
}
