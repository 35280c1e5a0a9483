/* deps_map.h: how the dependency map files accesses; deps.c asks, deps_map.c keeps the books.

   Accesses are filed by region, so a thousand readers of one tensor are one region with a list of readers. Regions of
   similar shape share a space, a grid of buckets over (address / pitch, address % pitch): a tile of a row-major tensor
   meets only the tiles around it, not the others of its rows. Contiguous regions have pitch 0 and a grid of one row. A
   space's bucket is at least as large as its regions, so each is filed once, where it begins. Reads and writes have
   separate spaces, because reads never ask for reads. Memory is that of the accesses held; links are positions. */
#ifndef PTO_DEPS_MAP_H
#define PTO_DEPS_MAP_H
#include "../internal.h"

#pragma GCC visibility push(hidden)

enum { NONE = -1, KIND_READ = 0, KIND_WRITE = 1, REPLACED = 1, RENEWED = 2 };

typedef struct access {
    int64_t node;
    int64_t task;
    int32_t region;
    int32_t next;              /* in its region, later ones after earlier; also the free list */
    int32_t older, newer;      /* among all accesses */
    int32_t arg;
    int32_t flags;
} access;

typedef struct region {
    pto_box box;
    int32_t space;
    int32_t first, last;       /* its accesses, in task order */
    uint32_t hash;             /* of its bucket */
    int32_t chain_prev, chain_next;
    int32_t peer_prev, peer_next;      /* in its space; peer_next also the free list */
    int32_t replaced;          /* REPLACED once the current task covers it, RENEWED when it writes exactly this */
} region;

typedef struct space {
    int64_t pitch;             /* bytes; 0: one endless row */
    int64_t lo, hi;            /* hull of its regions since it was last empty */
    int64_t max_rows, max_width;
    int64_t n;
    pto_box tile;              /* with is_grid: all regions since it was last empty lie as this one does, whole tiles apart or the same */
    int64_t tile_row, tile_col;
    bool is_grid;
    int32_t row_shift, col_shift;
    int32_t kind;
    int32_t first;             /* region */
    int32_t next;              /* in its group; also the free list */
    int32_t group;
} space;

typedef struct group {
    int64_t n;                 /* regions */
    int32_t buffer;
    int32_t first_space;
    int32_t n_spaces;
    int32_t next;              /* in its chain; also the free list */
} group;

/* Positions of free rows are chained from *_free; rows below n_* have been used at least once. */
struct pto_deps {
    access *accesses;
    region *regions;
    space *spaces;
    group *groups;
    int32_t *chains;           /* heads of the bucket chains, a power of two */
    int32_t *group_chains;
    int32_t *replaced;         /* regions that the current task covers */
    int64_t accesses_capacity, regions_capacity, spaces_capacity, groups_capacity, replaced_capacity;
    int64_t chains_size, group_chains_size;
    int64_t n_accesses, n_regions, n_spaces, n_groups, n_replaced;
    int64_t live_accesses, live_regions, live_groups;
    int32_t accesses_free, regions_free, spaces_free, groups_free;
    int32_t oldest, newest;    /* with keeps_ages: only pruning asks, and unlinking touches two neighbours */
    bool keeps_ages;
    int32_t last_group;        /* most tasks stay within one */
};

/* The bytes from the first to past the last of one row, where the first dimension counts rows. */
static inline int64_t pto_map_row_span(const pto_box *box)
{
    return box->n_dims == 0 ? box->width : box->hi - box->lo - box->stride[0] * (box->count[0] - 1);
}

/* Columns that follow one another have heads that do, in blocks: neighbours are asked for together. The blocks are mixed,
   or regions that lie a power of two apart would all meet in a few heads. */
static inline uint32_t pto_map_hash(int32_t at_space, int64_t row, int64_t col)
{
    uint64_t h = (uint64_t)row * 0x9e3779b97f4a7c15u ^ (uint64_t)(col >> 6) * 0xc2b2ae3d27d4eb4fu ^
                 (uint64_t)(uint32_t)at_space * 0x165667b19e3779f9u;
    h ^= h >> 32;
    return (uint32_t)((h * 0xd6e8feb86659fd93u) >> 32) + (uint32_t)(col & 63);
}

/* Where a region begins, in the rows and columns of its space. */
static inline int64_t pto_map_row(const space *s, int64_t lo)
{
    return s->pitch == 0 ? 0 : pto_floor_div(lo, s->pitch);
}

/* Whether a box is a tile of a space's grid: such boxes are equal or apart. A tile does not reach past the end of a row. */
static inline bool pto_map_is_tile(const space *s, const pto_box *box, int64_t row)
{
    const pto_box *tile = &s->tile;
    if (box->width != tile->width)
        return false;
    if (s->pitch == 0)
        return box->n_dims == 0 && (box->lo - tile->lo) % tile->width == 0;
    int64_t col = box->lo - row * s->pitch;
    return box->n_dims == 1 && box->stride[0] == s->pitch && box->count[0] == tile->count[0] && col + box->width <= s->pitch &&
           (row - s->tile_row) % tile->count[0] == 0 && (col - s->tile_col) % tile->width == 0;
}

int32_t pto_map_group(const pto_deps *d, int32_t buffer);      /* NONE when it has no regions */
bool pto_map_enter(pto_deps *d, int64_t node, int64_t task, int32_t arg, int32_t flags, int32_t buffer,
                   const pto_box *box);                         /* false: no memory */
bool pto_map_append(pto_deps *d, int32_t at, int64_t node, int64_t task, int32_t arg, int32_t flags);
void pto_map_remove_first(pto_deps *d, region *r);              /* its oldest access; the region stays */
void pto_map_remove_region(pto_deps *d, int32_t at);            /* that has no accesses left */
void pto_map_remove_group(pto_deps *d, int32_t at);             /* that has no regions left */

#pragma GCC visibility pop

#endif
