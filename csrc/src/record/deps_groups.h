/* deps_groups.h: the alias groups of the dependency map, by buffer. */
#ifndef PTO_DEPS_GROUPS_H
#define PTO_DEPS_GROUPS_H
#include "deps_state.h"

#pragma GCC visibility push(hidden)

void pto_map_clear_chains(int32_t *chains, int64_t n);
bool pto_map_grow_chains(int32_t **chains, int64_t *size, int64_t need);       /* empties them when they grow; false: no memory */
int32_t pto_map_find_group(const pto_deps *d, int32_t buffer);
int32_t pto_map_add_group(pto_deps *d, int32_t buffer);        /* NONE without memory */
void pto_map_remove_group(pto_deps *d, int32_t at);            /* that has no regions left */

/* NONE when it has no regions. */
static inline int32_t pto_map_group(const pto_deps *d, int32_t buffer)
{
    return d->last_group != NONE && d->groups[d->last_group].buffer == buffer ? d->last_group : pto_map_find_group(d, buffer);
}

#pragma GCC visibility pop

#endif
