/* deps.c: which earlier accesses does a task conflict with?

   The map (deps_map.h) holds, for each alias group, the latest accesses: a write that covers an earlier access replaces
   it. A query of a space walks the buckets under its box or all regions of the space, whichever are fewer. Reporting a
   region twice is harmless: edges merge. */
#include "deps_map.h"

/* What one query carries through the spaces. */
typedef struct query {
    const pto_box *box;
    int64_t span;              /* bytes of one row of box */
    pto_edges *edges;
    int32_t flags;
    int32_t arg;
    int32_t why_read;          /* of an edge from a writer to a reader */
    int32_t renews;            /* the write region that is exactly box; NONE until found */
} query;

static bool visit(pto_deps *d, query *q, int32_t at)
{
    region *r = &d->regions[at];
    if (r->box.lo >= q->box->hi || q->box->lo >= r->box.hi ||
        (!pto_box_equal(q->box, &r->box) && !pto_box_overlap(&r->box, q->box, PTO_OVERLAP_STEPS)))
        return true;
    for (int32_t a = r->first; a != NONE; a = d->accesses[a].next) {
        const access *earlier = &d->accesses[a];
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
    if (!(q->flags & PTO_WRITE) || !pto_box_covers(q->box, &r->box))
        return true;
    if (r->replaced == 0) {
        if (!PTO_RESERVE(d->replaced, d->replaced_capacity, d->n_replaced + 1))
            return false;
        r->replaced = REPLACED;
        d->replaced[d->n_replaced++] = at;
    }
    if (d->spaces[r->space].kind == KIND_WRITE && pto_box_equal(q->box, &r->box)) {
        r->replaced = RENEWED;         /* stays where it is filed, for this task's access */
        q->renews = at;
    }
    return true;
}

static bool visit_all(pto_deps *d, query *q, const space *s)
{
    for (int32_t at = s->first; at != NONE; at = d->regions[at].peer_next)
        if (!visit(d, q, at))
            return false;
    return true;
}

static bool visit_buckets(pto_deps *d, query *q, int32_t at_space, int64_t row, int64_t row_last, int64_t col,
                          int64_t col_last)
{
    uint32_t mask = (uint32_t)(d->chains_size - 1);
    for (; row <= row_last; row++)
        for (int64_t c = col; c <= col_last; c++)
            for (int32_t at = d->chains[pto_map_hash(at_space, row, c) & mask]; at != NONE;
                 at = d->regions[at].chain_next)
                if (d->regions[at].space == at_space && !visit(d, q, at))
                    return false;
    return true;
}

/* Of a grid only the tile itself meets a tile. */
static bool visit_tile(pto_deps *d, query *q, int32_t at_space, int64_t row, int64_t col)
{
    int32_t at = d->chains[pto_map_hash(at_space, row, col) & (uint32_t)(d->chains_size - 1)];
    for (; at != NONE; at = d->regions[at].chain_next)
        if (d->regions[at].box.lo == q->box->lo && d->regions[at].space == at_space && !visit(d, q, at))
            return false;
    return true;
}

/* Regions are filed where they begin, so the query's box grows downward by the largest region before it is cut into
   buckets. In a grid with a pitch the same byte is at (row, col) and at (row + 1, col - pitch): a box that leaves its
   row's end is looked for under all three names that can meet the columns 0 .. pitch. */
static bool visit_space(pto_deps *d, query *q, int32_t at_space)
{
    const space *s = &d->spaces[at_space];
    if (s->n == 0 || q->box->lo >= s->hi || s->lo >= q->box->hi)
        return true;
    if (s->n <= 2)
        return visit_all(d, q, s);
    int64_t tile_row = pto_map_row(s, q->box->lo);
    if (s->is_grid && pto_map_is_tile(s, q->box, tile_row))
        return visit_tile(d, q, at_space, tile_row >> s->row_shift, (q->box->lo - tile_row * s->pitch) >> s->col_shift);
    if (s->pitch == 0) {
        int64_t col = (q->box->lo - (s->max_width - 1)) >> s->col_shift, col_last = (q->box->hi - 1) >> s->col_shift;
        if (col_last - col >= s->n)
            return visit_all(d, q, s);
        return visit_buckets(d, q, at_space, 0, 0, col, col_last);
    }

    int64_t row = pto_floor_div(q->box->lo, s->pitch), rows, col, width;
    if (q->box->n_dims > 0 && q->box->stride[0] == s->pitch && q->span <= s->pitch) {
        rows = q->box->count[0];
        col = q->box->lo - row * s->pitch;
        width = q->span;
    } else if (q->box->hi - q->box->lo <= s->pitch) {
        rows = 1;
        col = q->box->lo - row * s->pitch;
        width = q->box->hi - q->box->lo;
    } else {
        rows = pto_floor_div(q->box->hi - 1, s->pitch) - row + 1;
        col = 0;
        width = s->pitch;
    }
    int64_t begin_col[3], end_col[3], n = 0;
    int64_t n_rows = ((row + rows) >> s->row_shift) - ((row - s->max_rows) >> s->row_shift) + 1;
    for (int64_t k = -1; k <= 1; k++) {
        int64_t from = col - (s->max_width - 1) - k * s->pitch, to = col + width - 1 - k * s->pitch;
        from = from < 0 ? 0 : from;
        to = to >= s->pitch ? s->pitch - 1 : to;
        begin_col[k + 1] = from >> s->col_shift;
        end_col[k + 1] = to < from ? begin_col[k + 1] - 1 : to >> s->col_shift;
        n += end_col[k + 1] - begin_col[k + 1] + 1;
    }
    if (n_rows >= s->n || n >= s->n || n_rows * n >= s->n)
        return visit_all(d, q, s);
    for (int64_t k = -1; k <= 1; k++)
        if (!visit_buckets(d, q, at_space, (row - (s->max_rows - 1) + k) >> s->row_shift,
                           (row + rows - 1 + k) >> s->row_shift, begin_col[k + 1], end_col[k + 1]))
            return false;
    return true;
}

/* Drop what the task's writes cover. All its arguments have asked by now, so none misses an edge. */
static void remove_replaced(pto_deps *d)
{
    for (int64_t i = 0; i < d->n_replaced; i++) {
        region *r = &d->regions[d->replaced[i]];
        while (r->first != NONE)
            pto_map_remove_first(d, r);
        if (r->replaced == RENEWED)
            r->replaced = 0;
        else
            pto_map_remove_region(d, d->replaced[i]);
    }
    d->n_replaced = 0;
}

int32_t pto_deps_submit(pto_deps *d, int64_t node, int64_t task, int32_t n_args, const pto_arg *args,
                        const pto_box *boxes, pto_edges *edges)
{
    int32_t renews[PTO_MAX_ARGS];
    for (int32_t i = 0; i < n_args; i++) {
        renews[i] = NONE;
        int32_t flags = args[i].flags & (PTO_READ | PTO_WRITE);
        if (flags == 0 || boxes[i].lo >= boxes[i].hi)
            continue;
        int32_t at_group = pto_map_group(d, args[i].buffer);
        if (at_group == NONE)
            continue;
        query q = {&boxes[i], pto_map_row_span(&boxes[i]), edges, flags, i, PTO_EDGE_RAW, NONE};
        for (int32_t at = d->groups[at_group].first_space; at != NONE; at = d->spaces[at].next)
            if ((flags & PTO_WRITE || d->spaces[at].kind == KIND_WRITE) && !visit_space(d, &q, at))
                return PTO_E_NOMEM;
        renews[i] = q.renews;
    }
    remove_replaced(d);
    for (int32_t i = 0; i < n_args; i++) {
        int32_t flags = args[i].flags & (PTO_READ | PTO_WRITE);
        if (flags == 0 || boxes[i].lo >= boxes[i].hi)
            continue;
        bool entered = renews[i] != NONE
                           ? pto_map_append(d, renews[i], node, task, i, flags)
                           : pto_map_enter(d, node, task, i, flags, args[i].buffer, &boxes[i]);
        if (!entered)
            return PTO_E_NOMEM;
    }
    return PTO_OK;
}

int32_t pto_deps_read(pto_deps *d, int32_t n_args, const pto_arg *args, const pto_box *boxes, pto_edges *edges)
{
    for (int32_t i = 0; i < n_args; i++) {
        int32_t at_group = boxes[i].lo < boxes[i].hi ? pto_map_group(d, args[i].buffer) : NONE;
        if (at_group == NONE)
            continue;
        query q = {&boxes[i], pto_map_row_span(&boxes[i]), edges, PTO_READ, i, PTO_EDGE_READ, NONE};
        for (int32_t at = d->groups[at_group].first_space; at != NONE; at = d->spaces[at].next)
            if (d->spaces[at].kind == KIND_WRITE && !visit_space(d, &q, at))
                return PTO_E_NOMEM;
    }
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
            while (d->regions[at_region].first != NONE)
                pto_map_remove_first(d, &d->regions[at_region]);
            pto_map_remove_region(d, at_region);
        }
    pto_map_remove_group(d, at_group);
}

void pto_deps_prune(pto_deps *d, int64_t first_task, int64_t first_node)
{
    while (d->oldest != NONE && d->accesses[d->oldest].task < first_task && d->accesses[d->oldest].node < first_node) {
        int32_t at = d->accesses[d->oldest].region;
        pto_map_remove_first(d, &d->regions[at]);   /* accesses of a region are in task order: the oldest is its first */
        if (d->regions[at].first != NONE)
            continue;
        int32_t at_group = d->spaces[d->regions[at].space].group;
        pto_map_remove_region(d, at);
        if (d->groups[at_group].n == 0)
            pto_map_remove_group(d, at_group);
    }
}
