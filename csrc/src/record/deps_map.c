/* deps_map.c: groups, spaces, regions and accesses of the dependency map, see deps_map.h. */
#include "deps_map.h"

enum { MAX_SPACES = 48, MAX_LOOKED_AT = 16 };

static uint32_t group_hash(int32_t buffer)
{
    return (uint32_t)(((uint64_t)(uint32_t)buffer * 0x9e3779b97f4a7c15u) >> 32);
}

static void clear_chains(int32_t *chains, int64_t n)
{
    if (n > 0)
        memset(chains, 0xff, (size_t)n * sizeof *chains);      /* all NONE */
}

void pto_deps_reset(pto_deps *d)
{
    d->n_accesses = d->n_regions = d->n_spaces = d->n_groups = d->n_replaced = 0;
    d->live_accesses = d->live_regions = d->live_groups = 0;
    d->accesses_free = d->regions_free = d->spaces_free = d->groups_free = NONE;
    d->oldest = d->newest = d->last_group = NONE;
    clear_chains(d->chains, d->chains_size);
    clear_chains(d->group_chains, d->group_chains_size);
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
    free(d->regions);
    free(d->spaces);
    free(d->groups);
    free(d->chains);
    free(d->group_chains);
    free(d->replaced);
    free(d);
}

/* ---- spaces and groups ---- */

static bool grow_chains(int32_t **chains, int64_t *size, int64_t need)
{
    if (need <= *size)
        return true;
    if (!PTO_RESERVE(*chains, *size, need))
        return false;
    clear_chains(*chains, *size);
    return true;
}

int32_t pto_map_group(const pto_deps *d, int32_t buffer)
{
    if (d->last_group != NONE && d->groups[d->last_group].buffer == buffer)
        return d->last_group;
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

static int32_t add_group(pto_deps *d, int32_t buffer)
{
    int64_t size = d->group_chains_size;
    if (!grow_chains(&d->group_chains, &d->group_chains_size, d->live_groups + 1))
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

/* The space of the group that suits the box; NONE without memory. */
static int32_t take_space(pto_deps *d, int32_t at_group, const pto_box *box, int32_t kind)
{
    int64_t rows = 1, width = box->hi - box->lo, pitch = 0;
    int32_t row_shift = 0, col_shift = 8;
    if (box->n_dims > 0 && pto_map_row_span(box) <= box->stride[0] && d->groups[at_group].n_spaces < MAX_SPACES) {
        pitch = box->stride[0];
        rows = box->count[0];
        width = pto_map_row_span(box);
        col_shift = 6;
    }
    while ((int64_t)1 << row_shift < rows)
        row_shift++;
    while ((int64_t)1 << col_shift < width)
        col_shift += pitch == 0 ? 2 : 1;

    int32_t at = d->groups[at_group].first_space;
    for (; at != NONE; at = d->spaces[at].next) {
        const space *s = &d->spaces[at];
        if (s->kind == kind && s->pitch == pitch && s->row_shift == row_shift && s->col_shift == col_shift)
            break;
    }
    if (at == NONE) {
        at = d->spaces_free;
        if (at != NONE)
            d->spaces_free = d->spaces[at].next;
        else if (!PTO_RESERVE(d->spaces, d->spaces_capacity, d->n_spaces + 1))
            return NONE;
        else
            at = (int32_t)d->n_spaces++;
        d->spaces[at] = (space){.pitch = pitch, .row_shift = row_shift, .col_shift = col_shift, .kind = kind,
                                .first = NONE, .next = d->groups[at_group].first_space, .group = at_group};
        d->groups[at_group].first_space = at;
        d->groups[at_group].n_spaces++;
    }
    space *s = &d->spaces[at];
    int64_t row = pto_map_row(s, box->lo);
    if (s->n == 0) {
        s->tile = *box;
        s->tile_row = row;
        s->tile_col = box->lo - row * pitch;
        s->is_grid = true;
    }
    s->is_grid = s->is_grid && pto_map_is_tile(s, box, row);
    if (s->n == 0) {
        s->lo = box->lo;
        s->hi = box->hi;
        s->max_rows = rows;
        s->max_width = width;
    } else {
        s->lo = box->lo < s->lo ? box->lo : s->lo;
        s->hi = box->hi > s->hi ? box->hi : s->hi;
        s->max_rows = rows > s->max_rows ? rows : s->max_rows;
        s->max_width = width > s->max_width ? width : s->max_width;
    }
    return at;
}

static uint32_t home_hash(const space *s, int32_t at_space, int64_t lo)
{
    if (s->pitch == 0)
        return pto_map_hash(at_space, 0, lo >> s->col_shift);
    int64_t row = pto_floor_div(lo, s->pitch);
    return pto_map_hash(at_space, row >> s->row_shift, (lo - row * s->pitch) >> s->col_shift);
}

/* ---- regions and their accesses ---- */

static void link_chain(pto_deps *d, int32_t at)
{
    region *r = &d->regions[at];
    int32_t *head = &d->chains[r->hash & (uint32_t)(d->chains_size - 1)];
    r->chain_prev = NONE;
    r->chain_next = *head;
    if (*head != NONE)
        d->regions[*head].chain_prev = at;
    *head = at;
}

static int32_t add_region(pto_deps *d, int32_t at_space, const pto_box *box, uint32_t hash)
{
    int64_t size = d->chains_size;
    if (d->live_regions >= INT32_MAX - 1 || !grow_chains(&d->chains, &d->chains_size, d->live_regions + 1))
        return NONE;
    if (d->chains_size != size)
        for (int32_t i = 0; i < d->n_regions; i++)
            if (d->regions[i].space != NONE)
                link_chain(d, i);
    int32_t at = d->regions_free;
    if (at != NONE)
        d->regions_free = d->regions[at].peer_next;
    else if (!PTO_RESERVE(d->regions, d->regions_capacity, d->n_regions + 1))
        return NONE;
    else
        at = (int32_t)d->n_regions++;

    region *r = &d->regions[at];
    space *s = &d->spaces[at_space];
    r->box = *box;
    r->space = at_space;
    r->first = r->last = NONE;
    r->replaced = 0;
    r->hash = hash;
    link_chain(d, at);
    r->peer_prev = NONE;
    r->peer_next = s->first;
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
    if (r->chain_prev != NONE)
        d->regions[r->chain_prev].chain_next = r->chain_next;
    else
        d->chains[r->hash & (uint32_t)(d->chains_size - 1)] = r->chain_next;
    if (r->chain_next != NONE)
        d->regions[r->chain_next].chain_prev = r->chain_prev;
    if (r->peer_prev != NONE)
        d->regions[r->peer_prev].peer_next = r->peer_next;
    else
        s->first = r->peer_next;
    if (r->peer_next != NONE)
        d->regions[r->peer_next].peer_prev = r->peer_prev;
    s->n--;
    d->groups[s->group].n--;
    d->live_regions--;
    r->space = NONE;           /* marks a free row */
    r->peer_next = d->regions_free;
    d->regions_free = at;
}

void pto_map_remove_first(pto_deps *d, region *r)
{
    int32_t at = r->first;
    access *a = &d->accesses[at];
    r->first = a->next;
    if (r->first == NONE)
        r->last = NONE;
    if (d->keeps_ages) {
        if (a->older != NONE)
            d->accesses[a->older].newer = a->newer;
        else
            d->oldest = a->newer;
        if (a->newer != NONE)
            d->accesses[a->newer].older = a->older;
        else
            d->newest = a->older;
    }
    a->next = d->accesses_free;
    d->accesses_free = at;
    d->live_accesses--;
}

/* A region that many tasks read is looked for under its bucket, but not for long: a second entry is only slower. */
static int32_t find_region(const pto_deps *d, int32_t at_space, const pto_box *box, uint32_t hash)
{
    if (d->chains_size == 0)
        return NONE;
    int32_t at = d->chains[hash & (uint32_t)(d->chains_size - 1)];
    for (int32_t i = 0; at != NONE && i < MAX_LOOKED_AT; i++, at = d->regions[at].chain_next)
        if (d->regions[at].space == at_space && pto_box_equal(&d->regions[at].box, box))
            return at;
    return NONE;
}

bool pto_map_append(pto_deps *d, int32_t at, int64_t node, int64_t task, int32_t arg, int32_t flags)
{
    int32_t a = d->accesses_free;
    if (a != NONE)
        d->accesses_free = d->accesses[a].next;
    else if (d->n_accesses >= INT32_MAX - 1 || !PTO_RESERVE(d->accesses, d->accesses_capacity, d->n_accesses + 1))
        return false;
    else
        a = (int32_t)d->n_accesses++;
    d->accesses[a] = (access){.node = node, .task = task, .region = at, .next = NONE, .older = d->newest,
                              .newer = NONE, .arg = arg, .flags = flags};
    if (d->keeps_ages) {
        if (d->newest != NONE)
            d->accesses[d->newest].newer = a;
        else
            d->oldest = a;
        d->newest = a;
    }
    region *r = &d->regions[at];
    if (r->last != NONE)
        d->accesses[r->last].next = a;
    else
        r->first = a;
    r->last = a;
    d->live_accesses++;
    return true;
}

bool pto_map_enter(pto_deps *d, int64_t node, int64_t task, int32_t arg, int32_t flags, int32_t buffer,
                  const pto_box *box)
{
    int32_t at_group = pto_map_group(d, buffer);
    if (at_group == NONE && (at_group = add_group(d, buffer)) == NONE)
        return false;
    d->last_group = at_group;
    int32_t kind = flags & PTO_WRITE ? KIND_WRITE : KIND_READ;
    int32_t at_space = take_space(d, at_group, box, kind);
    if (at_space == NONE)
        return false;
    uint32_t hash = home_hash(&d->spaces[at_space], at_space, box->lo);
    int32_t at = find_region(d, at_space, box, hash);
    if (at == NONE && (at = add_region(d, at_space, box, hash)) == NONE)
        return false;
    return pto_map_append(d, at, node, task, arg, flags);
}
