/* deps.c: which earlier accesses does a task conflict with?

   The map (deps_state.h) holds, for each alias group, the latest accesses: a write that covers an earlier access replaces
   it. A query of a space looks at one cell for a tile of a grid; otherwise it walks the cells under its box or all regions
   of the space, whichever are fewer. Reporting a region twice is harmless: edges merge. */
#include "deps.h"

#include <stdlib.h>

#include "deps_map.h"

/* What one query carries through the spaces. */
typedef struct query {
    const pto_shape *shape;
    int64_t lo, hi;
    pto_edges *edges;
    int32_t flags;
    int32_t arg;
    int32_t why_read;          /* of an edge from a writer to a reader */
    filed *own;                /* set: where the query's own access goes */
} query;

static inline bool add_edges(const pto_deps *d, const query *q, int32_t first)
{
    for (int32_t at = first; at != NONE; at = d->accesses[at].next) {
        const access *earlier = &d->accesses[at];
        int32_t why = 0;
        if (q->flags & PTO_READ && earlier->flags & PTO_WRITE)
            why |= q->why_read;
        if (q->flags & PTO_WRITE && earlier->flags & PTO_READ)
            why |= PTO_EDGE_WAR;
        if (q->flags & PTO_WRITE && earlier->flags & PTO_WRITE)
            why |= PTO_EDGE_WAW;
        if (!pto_edges_add(q->edges, earlier->node, why, earlier->arg << 16 | q->arg))
            return false;
    }
    return true;
}

/* The query shares bytes with a region: `is_same` when they are equal, `covers` when it has all of its bytes. */
static inline bool meet(pto_deps *d, query *q, int32_t at, bool is_same, bool covers)
{
    region *r = &d->regions[at];
    if (!add_edges(d, q, r->first[WRITES]) || (q->flags & PTO_WRITE && !add_edges(d, q, r->first[READS])))
        return false;
    if (is_same) {
        r->marks |= SAME;
        q->own->region = at;
    }
    if (!covers || !(q->flags & PTO_WRITE) || r->marks & COVERED)
        return true;
    if (!PTO_RESERVE(d->covered, d->covered_capacity, d->n_covered + 1))
        return false;
    r->marks |= COVERED;
    d->covered[d->n_covered++] = at;
    return true;
}

static bool visit(pto_deps *d, query *q, int32_t at)
{
    const region *r = &d->regions[at];
    const pto_box *shape = pto_map_box(d, r);
    if (r->lo >= q->hi || q->lo >= r->lo + shape->hi || (!(q->flags & PTO_WRITE) && r->first[WRITES] == NONE))
        return true;
    if (r->lo == q->lo && pto_map_has_shape(shape, &q->shape->box))
        return meet(d, q, at, true, true);
    pto_box mine = pto_box_at(&q->shape->box, q->lo), theirs = pto_box_at(shape, r->lo);
    return !pto_box_overlap(&theirs, &mine, PTO_OVERLAP_STEPS) || meet(d, q, at, false, pto_box_covers(&mine, &theirs));
}

static bool visit_all(pto_deps *d, query *q, const space *s)
{
    for (int32_t at = s->first; at != NONE; at = d->regions[at].peer_next)
        if (!visit(d, q, at))
            return false;
    return true;
}

static bool visit_cells(pto_deps *d, query *q, int32_t at_space, int64_t row, int64_t row_last, int64_t col, int64_t col_last)
{
    const space *s = &d->spaces[at_space];
    for (; row <= row_last; row++)
        for (int64_t c = col; c <= col_last; c++)
            for (int32_t at = *pto_map_head(d, pto_map_hash(s, row, c)); at != NONE; at = d->regions[at].chain_next)
                if (d->regions[at].space == at_space && !visit(d, q, at))
                    return false;
    return true;
}

static int64_t cell_of(const divider *cell, int64_t n)
{
    int64_t rest;
    return pto_map_divide(cell, n, &rest);
}

/* In one endless row. */
static bool visit_row(pto_deps *d, query *q, int32_t at_space, const place *p)
{
    const space *s = &d->spaces[at_space];
    int64_t col = cell_of(&s->cell_cols, p->col - (s->max_width - 1)), col_last = cell_of(&s->cell_cols, p->col + (q->hi - q->lo - 1));
    if (col_last - col >= s->n)
        return visit_all(d, q, s);
    return visit_cells(d, q, at_space, 0, 0, col, col_last);
}

/* Regions are filed where they begin, so the query's box grows downward by the largest region before it is cut into
   cells. In rows with a pitch the same byte is at (row, col) and at (row + 1, col - pitch): a box that leaves its row's end
   is looked for under all three names that can meet the columns 0 .. pitch. */
static bool visit_rows(pto_deps *d, query *q, int32_t at_space, const place *p)
{
    const space *s = &d->spaces[at_space];
    const pto_box *box = &q->shape->box;
    int64_t pitch = s->pitch.by, span = pto_box_row(box), row = p->row, rows = 1, col = p->col, width = q->hi - q->lo;
    if (box->n_dims > 0 && box->stride[0] == pitch && span <= pitch) {
        rows = box->count[0];
        width = span;
    } else if (width > pitch) {
        rows = cell_of(&s->pitch, q->hi - 1 - s->base) - row + 1;
        col = 0;
        width = pitch;
    }
    int64_t begin_col[3], end_col[3], n = 0;
    int64_t n_rows = cell_of(&s->cell_rows, row + rows) - cell_of(&s->cell_rows, row - s->max_rows) + 1;
    for (int64_t k = -1; k <= 1; k++) {
        int64_t from = col - (s->max_width - 1) - k * pitch, to = col + width - 1 - k * pitch;
        from = from < 0 ? 0 : from;
        to = to >= pitch ? pitch - 1 : to;
        begin_col[k + 1] = cell_of(&s->cell_cols, from);
        end_col[k + 1] = to < from ? begin_col[k + 1] - 1 : cell_of(&s->cell_cols, to);
        n += end_col[k + 1] - begin_col[k + 1] + 1;
    }
    if (n_rows >= s->n || n >= s->n || n_rows * n >= s->n)
        return visit_all(d, q, s);
    for (int64_t k = -1; k <= 1; k++)
        if (!visit_cells(d, q, at_space, cell_of(&s->cell_rows, row - (s->max_rows - 1) + k),
                         cell_of(&s->cell_rows, row + rows - 1 + k), begin_col[k + 1], end_col[k + 1]))
            return false;
    return true;
}

static bool visit_space(pto_deps *d, query *q, int32_t at_space)
{
    const space *s = &d->spaces[at_space];
    if (s->n == 0 || q->lo >= s->hi || s->lo >= q->hi || (!(q->flags & PTO_WRITE) && s->n_written == 0))
        return true;
    if (s->n <= 2)
        return visit_all(d, q, s);
    place p = pto_map_place(s, q->lo);
    return s->pitch.by == 0 ? visit_row(d, q, at_space, &p) : visit_rows(d, q, at_space, &p);
}

/* Drop what the task's writes cover. All its arguments have asked by now, so none misses an edge. */
static void remove_covered(pto_deps *d)
{
    for (int64_t i = 0; i < d->n_covered; i++) {
        region *r = &d->regions[d->covered[i]];
        pto_map_remove_accesses(d, r);
        if (r->marks & SAME)
            r->marks = SAME;
        else
            pto_map_remove_region(d, d->covered[i]);
    }
    d->n_covered = 0;
}

static inline bool is_access(const pto_arg *arg, const pto_shape *shape)
{
    return (arg->flags & (PTO_READ | PTO_WRITE)) != 0 && shape->state == PTO_BOX_OK;
}

/* Ask for what the arguments meet, and where their accesses go. Of a grid only the tile itself meets a tile. */
static bool ask(pto_deps *d, int32_t n_args, const pto_arg *args, const pto_shape *const *shapes, int32_t why_read, pto_edges *edges,
                filed *own)
{
    for (int32_t i = 0; i < n_args; i++) {
        own[i] = (filed){NONE, NONE, 0, 0};
        int32_t at_group;
        if (!is_access(&args[i], shapes[i]) || (at_group = pto_map_group(d, args[i].buffer)) == NONE)
            continue;
        int64_t lo = pto_shape_lo(shapes[i], &args[i]);
        query q = {shapes[i], lo, lo + shapes[i]->box.hi, edges, args[i].flags, i, why_read, &own[i]};
        for (int32_t at = d->groups[at_group].first_space; at != NONE; at = d->spaces[at].next) {
            if (pto_map_look(d, at, q.shape, lo, &own[i])) {
                if (own[i].region != NONE && !meet(d, &q, own[i].region, true, true))
                    return false;
            } else if (!visit_space(d, &q, at)) {
                return false;
            }
        }
    }
    return true;
}

int32_t pto_deps_submit(pto_deps *d, int64_t node, int64_t task, int32_t n_args, const pto_arg *args,
                        const pto_shape *const *shapes, pto_edges *edges)
{
    filed own[PTO_MAX_ARGS];
    if (!ask(d, n_args, args, shapes, PTO_EDGE_RAW, edges, own))
        return PTO_E_NOMEM;
    if (d->n_covered > 0)
        remove_covered(d);
    for (int32_t i = 0; i < n_args; i++) {
        if (!is_access(&args[i], shapes[i]))
            continue;
        int32_t at = own[i].region;
        if (at == NONE)
            at = pto_map_take(d, args[i].buffer, shapes[i], pto_shape_lo(shapes[i], &args[i]), &own[i]);
        if (at == NONE || !pto_map_append(d, at, node, task, i, args[i].flags))
            return PTO_E_NOMEM;
        d->regions[at].marks = 0;
    }
    return PTO_OK;
}

int32_t pto_deps_read(pto_deps *d, int32_t n_args, const pto_arg *args, const pto_shape *const *shapes, pto_edges *edges)
{
    filed own[PTO_MAX_ARGS];
    if (!ask(d, n_args, args, shapes, PTO_EDGE_READ, edges, own))
        return PTO_E_NOMEM;
    for (int32_t i = 0; i < n_args; i++)
        if (own[i].region != NONE)
            d->regions[own[i].region].marks = 0;
    return PTO_OK;
}

void pto_deps_forget(pto_deps *d, int32_t buffer)
{
    int32_t at_group = pto_map_group(d, buffer);
    if (at_group == NONE)
        return;
    for (int32_t at = d->groups[at_group].first_space; at != NONE; at = d->spaces[at].next)
        while (d->spaces[at].first != NONE) {
            int32_t at_region = d->spaces[at].first;
            pto_map_remove_accesses(d, &d->regions[at_region]);
            pto_map_remove_region(d, at_region);
        }
    pto_map_remove_group(d, at_group);
}

void pto_deps_prune(pto_deps *d, int64_t first_task, int64_t first_node)
{
    while (d->oldest != NONE && d->ages[d->oldest].task < first_task && d->accesses[d->oldest].node < first_node) {
        int32_t at = d->ages[d->oldest].region;
        region *r = &d->regions[at];
        /* accesses of a kind are in task order: the oldest of all is its first */
        pto_map_remove_first(d, r, d->accesses[d->oldest].flags & PTO_WRITE ? WRITES : READS);
        if (r->first[READS] != NONE || r->first[WRITES] != NONE)
            continue;
        int32_t at_group = d->spaces[r->space].group;
        pto_map_remove_region(d, at);
        if (d->groups[at_group].n == 0)
            pto_map_remove_group(d, at_group);
    }
}

/* ---- life ---- */

void pto_deps_reset(pto_deps *d)
{
    d->n_accesses = d->n_regions = d->n_boxes = d->n_spaces = d->n_groups = d->n_covered = 0;
    d->live_regions = d->live_groups = 0;
    d->accesses_free = d->regions_free = d->boxes_free = d->spaces_free = d->groups_free = NONE;
    d->oldest = d->newest = d->last_group = NONE;
    pto_map_clear_chains(d->chains, d->chains_size);
    pto_map_clear_chains(d->group_chains, d->group_chains_size);
}

pto_deps *pto_deps_new(bool prunes)
{
    pto_deps *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    d->keeps_ages = prunes;
    pto_deps_reset(d);
    return d;
}

void pto_deps_free(pto_deps *d)
{
    if (d == NULL)
        return;
    free(d->accesses);
    free(d->ages);
    free(d->regions);
    free(d->boxes);
    free(d->spaces);
    free(d->groups);
    free(d->chains);
    free(d->group_chains);
    free(d->covered);
    free(d);
}
