/* deps_map.c: spaces, regions and accesses of the dependency map, see deps_map.h. */
#include "deps_map.h"

enum { MAX_SPACES = 48, MAX_LOOKED_AT = 16 };

/* ---- chains of cells ---- */

static void link_chain(pto_deps *d, int32_t at)
{
    region *r = &d->regions[at];
    int32_t *head = pto_map_head(d, r->hash);
    r->chain_prev = NONE;
    r->chain_next = *head;
    if (*head != NONE)
        d->regions[*head].chain_prev = at;
    *head = at;
}

static void unlink_chain(pto_deps *d, int32_t at)
{
    const region *r = &d->regions[at];
    if (r->chain_prev != NONE)
        d->regions[r->chain_prev].chain_next = r->chain_next;
    else
        *pto_map_head(d, r->hash) = r->chain_next;
    if (r->chain_next != NONE)
        d->regions[r->chain_next].chain_prev = r->chain_prev;
}

/* ---- spaces ---- */

static void file_region(pto_deps *d, int32_t at)
{
    region *r = &d->regions[at];
    place p = pto_map_place(&d->spaces[r->space], r->lo);
    r->hash = pto_map_hash(&d->spaces[r->space], p.cell_row, p.cell_col);
    link_chain(d, at);
}

/* The shapes of a space have less than twice, in one row four times, the rows and columns of one another. */
static int32_t find_space(const pto_deps *d, const group *g, const pto_shape *shape)
{
    int32_t at = g->first_space;
    while (at != NONE) {
        const space *s = &d->spaces[at];
        if (s->pitch.by == shape->pitch && s->row_shift == shape->row_shift && s->col_shift == shape->col_shift)
            break;
        at = s->next;
    }
    return at;
}

static int32_t add_space(pto_deps *d, int32_t at_group, const pto_shape *shape)
{
    int32_t at = d->spaces_free;
    if (at != NONE)
        d->spaces_free = d->spaces[at].next;
    else if (!PTO_RESERVE(d->spaces, d->spaces_capacity, d->n_spaces + 1))
        return NONE;
    else
        at = (int32_t)d->n_spaces++;
    d->spaces[at] = (space){.pitch = pto_map_divider(shape->pitch), .row_shift = shape->row_shift, .col_shift = shape->col_shift,
                            .seed = (uint32_t)at * 0x9e3779b1u, .first = NONE, .next = d->groups[at_group].first_space, .group = at_group};
    d->groups[at_group].first_space = at;
    d->groups[at_group].n_spaces++;
    return at;
}

static void set_cells(space *s, int64_t rows, int64_t width)
{
    s->cell_rows = pto_map_divider(rows);
    s->cell_cols = pto_map_divider(width);
    s->cell_steps = (uint64_t)(s->pitch.by / width + 1) | 1;
    s->filing++;
}

/* An empty space becomes the grid whose first tile is at lo. */
static void begin_grid(space *s, const pto_shape *shape, int64_t lo)
{
    int64_t cell = shape->pitch == 0 ? shape->width : shape->pitch * shape->rows;
    s->tile = shape->box;
    s->tile_id = shape->id;
    s->lo = lo;
    s->hi = lo + shape->box.hi;
    s->max_rows = shape->rows;
    s->max_width = shape->width;
    s->left = 0;
    s->right = shape->width;
    set_cells(s, shape->rows, shape->width);
    s->tile_pitch = pto_map_divider(shape->pitch * shape->rows);
    s->base = lo - ((lo + 4 * PTO_FAR) / cell + 1) * cell;
    s->is_grid = shape->box.n_dims == (shape->pitch != 0);
}

/* From here on the cells are as large as the largest shape the space takes. */
static void end_grid(pto_deps *d, space *s)
{
    s->is_grid = false;
    set_cells(s, (int64_t)1 << s->row_shift, (int64_t)1 << s->col_shift);
    for (int32_t at = s->first; at != NONE; at = d->regions[at].peer_next) {
        unlink_chain(d, at);
        file_region(d, at);
    }
}

/* The space of the group that takes a shape at lo, made ready for it; NONE without memory. */
static int32_t take_space(pto_deps *d, int32_t at_group, const pto_shape *shape, int64_t lo)
{
    pto_shape as_row;
    int32_t at = find_space(d, &d->groups[at_group], shape);
    if (at == NONE && d->groups[at_group].n_spaces >= MAX_SPACES) {
        as_row = *shape;
        pto_shape_as_row(&as_row);
        shape = &as_row;
        at = find_space(d, &d->groups[at_group], shape);
    }
    if (at == NONE && (at = add_space(d, at_group, shape)) == NONE)
        return NONE;
    space *s = &d->spaces[at];
    if (s->n == 0) {
        begin_grid(s, shape, lo);
        return at;
    }
    if (s->is_grid) {
        int64_t cell_row, cell_col;
        if (!pto_map_take_tile(s, shape, lo, &cell_row, &cell_col))
            end_grid(d, s);
    }
    int64_t hi = lo + shape->box.hi;
    s->lo = lo < s->lo ? lo : s->lo;
    s->hi = hi > s->hi ? hi : s->hi;
    s->max_rows = shape->rows > s->max_rows ? shape->rows : s->max_rows;
    s->max_width = shape->width > s->max_width ? shape->width : s->max_width;
    return at;
}

/* ---- regions ---- */

static int32_t take_box(pto_deps *d, const pto_box *box)
{
    int32_t at = d->boxes_free;
    if (at != NONE)
        d->boxes_free = (int32_t)d->boxes[at].lo;
    else if (!PTO_RESERVE(d->boxes, d->boxes_capacity, d->n_boxes + 1))
        return NONE;
    else
        at = (int32_t)d->n_boxes++;
    d->boxes[at] = *box;
    return at;
}

static bool make_room(pto_deps *d)
{
    int64_t size = d->chains_size;
    if (d->live_regions >= INT32_MAX - 1 || !pto_map_grow_chains(&d->chains, &d->chains_size, d->live_regions + 1))
        return false;
    if (d->chains_size != size) {
        d->chains_bits = __builtin_ctzll((uint64_t)d->chains_size);
        for (int32_t i = 0; i < d->n_regions; i++)
            if (d->regions[i].space != NONE)
                link_chain(d, i);
    }
    return d->regions_free != NONE || PTO_RESERVE(d->regions, d->regions_capacity, d->n_regions + 1);
}

static int32_t add_region(pto_deps *d, int32_t at_space, const pto_shape *shape, int64_t lo, uint32_t hash)
{
    space *s = &d->spaces[at_space];
    int32_t box = NONE;
    if (!make_room(d) || (shape->id != s->tile_id && !pto_map_has_shape(&shape->box, &s->tile) && (box = take_box(d, &shape->box)) == NONE))
        return NONE;
    int32_t at = d->regions_free;
    if (at != NONE)
        d->regions_free = d->regions[at].peer_next;
    else
        at = (int32_t)d->n_regions++;
    d->regions[at] = (region){.lo = lo, .space = at_space, .box = box, .first = {NONE, NONE}, .last = {NONE, NONE}, .hash = hash,
                              .peer_prev = NONE, .peer_next = s->first};
    link_chain(d, at);
    if (s->first != NONE)
        d->regions[s->first].peer_prev = at;
    s->first = at;
    s->n++;
    d->groups[s->group].n++;
    d->live_regions++;
    return at;
}

void pto_map_remove_region(pto_deps *d, int32_t at)
{
    region *r = &d->regions[at];
    space *s = &d->spaces[r->space];
    unlink_chain(d, at);
    if (r->peer_prev != NONE)
        d->regions[r->peer_prev].peer_next = r->peer_next;
    else
        s->first = r->peer_next;
    if (r->peer_next != NONE)
        d->regions[r->peer_next].peer_prev = r->peer_prev;
    s->n--;
    d->groups[s->group].n--;
    d->live_regions--;
    if (r->box != NONE) {
        d->boxes[r->box].lo = d->boxes_free;
        d->boxes_free = r->box;
    }
    r->space = NONE;
    r->peer_next = d->regions_free;
    d->regions_free = at;
}

/* A region that many tasks read is looked for in its cell, but not for long: a second entry is only slower. */
static int32_t find_region(const pto_deps *d, int32_t at_space, const pto_shape *shape, int64_t lo, uint32_t hash)
{
    if (d->chains_size == 0)
        return NONE;
    int32_t at = *pto_map_head(d, hash);
    for (int32_t i = 0; at != NONE && i < MAX_LOOKED_AT; i++) {
        const region *r = &d->regions[at];
        if (r->lo == lo && r->space == at_space && pto_map_has_shape(pto_map_box(d, r), &shape->box))
            return at;
        at = r->chain_next;
    }
    return NONE;
}

int32_t pto_map_take(pto_deps *d, int32_t buffer, const pto_shape *shape, int64_t lo, const filed *looked)
{
    int32_t at_space = looked->space;
    uint32_t hash = looked->hash;
    if (at_space == NONE || d->spaces[at_space].filing != looked->filing) {
        int32_t at_group = pto_map_group(d, buffer);
        if (at_group == NONE && (at_group = pto_map_add_group(d, buffer)) == NONE)
            return NONE;
        d->last_group = at_group;
        if ((at_space = take_space(d, at_group, shape, lo)) == NONE)
            return NONE;
        place p = pto_map_place(&d->spaces[at_space], lo);
        hash = pto_map_hash(&d->spaces[at_space], p.cell_row, p.cell_col);
    }
    int32_t at = find_region(d, at_space, shape, lo, hash);        /* another argument may have made it */
    return at != NONE ? at : add_region(d, at_space, shape, lo, hash);
}

/* ---- accesses ---- */

void pto_map_remove_first(pto_deps *d, region *r, int32_t kind)
{
    int32_t at = r->first[kind];
    r->first[kind] = d->accesses[at].next;
    if (r->first[kind] == NONE) {
        r->last[kind] = NONE;
        d->spaces[r->space].n_written -= kind == WRITES;
    }
    if (d->keeps_ages) {
        const age *a = &d->ages[at];
        if (a->older != NONE)
            d->ages[a->older].newer = a->newer;
        else
            d->oldest = a->newer;
        if (a->newer != NONE)
            d->ages[a->newer].older = a->older;
        else
            d->newest = a->older;
    }
    d->accesses[at].next = d->accesses_free;
    d->accesses_free = at;
}

void pto_map_remove_accesses(pto_deps *d, region *r)
{
    for (int32_t kind = READS; kind <= WRITES; kind++)
        while (r->first[kind] != NONE)
            pto_map_remove_first(d, r, kind);
}

static void enter_age(pto_deps *d, int32_t at, int64_t task, int32_t at_region)
{
    d->ages[at] = (age){task, at_region, d->newest, NONE};
    if (d->newest != NONE)
        d->ages[d->newest].newer = at;
    else
        d->oldest = at;
    d->newest = at;
}

bool pto_map_append(pto_deps *d, int32_t at_region, int64_t node, int64_t task, int32_t arg, int32_t flags)
{
    int32_t at = d->accesses_free;
    if (at != NONE)
        d->accesses_free = d->accesses[at].next;
    else if (d->n_accesses >= INT32_MAX - 1 || !PTO_RESERVE(d->accesses, d->accesses_capacity, d->n_accesses + 1) ||
             (d->keeps_ages && !PTO_RESERVE(d->ages, d->ages_capacity, d->n_accesses + 1)))
        return false;
    else
        at = (int32_t)d->n_accesses++;
    d->accesses[at] = (access){node, NONE, (int16_t)arg, (int16_t)flags};
    if (d->keeps_ages)
        enter_age(d, at, task, at_region);
    region *r = &d->regions[at_region];
    int32_t kind = flags & PTO_WRITE ? WRITES : READS;
    if (r->last[kind] != NONE) {
        d->accesses[r->last[kind]].next = at;
    } else {
        r->first[kind] = at;
        d->spaces[r->space].n_written += kind == WRITES;
    }
    r->last[kind] = at;
    return true;
}
