/* deps_map.h: the regions of the dependency map and their accesses: find, make, remove. */
#ifndef PTO_DEPS_MAP_H
#define PTO_DEPS_MAP_H
#include "deps_groups.h"

#pragma GCC visibility push(hidden)

/* Where an access of a tile goes, if the space is a grid of such tiles; false, and nothing known, if not. */
static inline bool pto_map_look(pto_deps *d, int32_t at_space, const pto_shape *shape, int64_t lo, filed *out)
{
    space *s = &d->spaces[at_space];
    if (!s->is_grid || s->n == 0 || s->pitch.by != shape->pitch)
        return false;
    int64_t cell_row, cell_col;
    if (!pto_map_take_tile(s, shape, lo, &cell_row, &cell_col))
        return false;
    int64_t hi = lo + shape->box.hi;
    s->lo = lo < s->lo ? lo : s->lo;
    s->hi = hi > s->hi ? hi : s->hi;
    *out = (filed){NONE, at_space, pto_map_hash(s, cell_row, cell_col), s->filing};
    int32_t at = *pto_map_head(d, out->hash);
    while (at != NONE && (d->regions[at].lo != lo || d->regions[at].space != at_space))
        at = d->regions[at].chain_next;
    out->region = at;
    return true;
}

/* The region of an access, made where there is none; `looked` may say where it goes. NONE without memory. */
int32_t pto_map_take(pto_deps *d, int32_t buffer, const pto_shape *shape, int64_t lo, const filed *looked);
/* false: no memory */
bool pto_map_append(pto_deps *d, int32_t at, int64_t node, int64_t task, int32_t arg, int32_t flags);
void pto_map_remove_first(pto_deps *d, region *r, int32_t kind);       /* its oldest access of a kind; the region stays */
void pto_map_remove_accesses(pto_deps *d, region *r);          /* the region stays */
void pto_map_remove_region(pto_deps *d, int32_t at);           /* that has no accesses left */

#pragma GCC visibility pop

#endif
