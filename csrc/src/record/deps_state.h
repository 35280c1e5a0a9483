/* deps_state.h: how the dependency map files accesses: its rows, and the cells where they are filed.

   Accesses are filed by region, so a thousand readers of one tensor are one region with a list of readers; what wrote it is
   a list of its own, because readers only ask for writers. Regions of similar shape share a space, a grid of cells over
   rows of `pitch` bytes: a tile of a row-major tensor meets only the tiles around it, not the others of its rows.
   Contiguous regions have pitch 0 and a grid of one row. Each region is filed once, in the cell where it begins. While all
   regions of a space are tiles of one grid, the cells are those tiles, and a tile meets nothing but itself.
   Memory is that of the accesses kept; links are positions. pto_deps owns all arrays. Units: bytes and addresses; nodes and tasks by
   absolute number. */
#ifndef PTO_DEPS_STATE_H
#define PTO_DEPS_STATE_H
#include "../collections/array.h"
#include "shapes.h"

#pragma GCC visibility push(hidden)

enum { NONE = -1, READS = 0, WRITES = 1 };

/* Bits of region.marks while a task is entered. COVERED: the task's writes cover the whole region. SAME: an access of the task is exactly
   the region, and the region stays in the map for that access. */
enum { COVERED = 1, SAME = 2 };

typedef struct access {
    int64_t node;
    int32_t next;              /* of its kind in its region, later ones after earlier; also the free list */
    int16_t arg;
    int16_t flags;
} access;

/* What pruning asks of the access in the same row. */
typedef struct age {
    int64_t task;
    int32_t region;
    int32_t older, newer;      /* among all accesses */
} age;

typedef struct region {
    int64_t lo;
    int32_t space;             /* NONE: a free row */
    int32_t chain_next;
    int32_t first[2], last[2]; /* its accesses in task order, READS and WRITES */
    int32_t marks;
    int32_t box;               /* in pto_deps.boxes; NONE: it is shaped as the tile of its space */
    uint32_t hash;             /* of its cell */
    int32_t chain_prev;
    int32_t peer_prev, peer_next;      /* in its space; peer_next also the free list */
} region;

/* Division by a number that stays: a multiplication. */
typedef struct divider {
    int64_t by;                /* > 0 */
    uint64_t reciprocal;
} divider;

typedef struct space {
    int64_t lo, hi;            /* hull of its regions since it was last empty */
    int64_t max_rows, max_width;
    int64_t n;                 /* regions */
    int64_t n_written;         /* of these, that something wrote */
    int64_t tile_id;           /* of a shape that is the tile's */
    pto_box tile;              /* the first region since it was last empty, from 0 */
    int64_t left, right;       /* with is_grid: hull of the tiles' columns, relative to the first one's */
    int64_t base;              /* begin of row 0 and column 0: a whole number of cells before the first region and before every address */
    divider pitch;             /* bytes; by 0: one endless row */
    divider cell_rows, cell_cols;
    uint64_t cell_steps;       /* cells counted from a row to the next */
    uint32_t seed;             /* of the hashes of its cells */
    divider tile_pitch;        /* with is_grid: bytes from a row of tiles to the next; by 0: one row */
    int32_t row_shift, col_shift;      /* of the shapes it takes */
    int32_t first;             /* region */
    int32_t next;              /* in its group; also the free list */
    int32_t group;
    uint32_t filing;           /* counts how often its cells changed */
    bool is_grid;              /* all regions since it was last empty lie as the tile does, whole tiles apart or the same */
} space;

typedef struct group {
    int64_t n;                 /* regions */
    int32_t buffer;
    int32_t first_space;
    int32_t n_spaces;
    int32_t next;              /* in its chain; also the free list */
} group;

typedef struct pto_deps pto_deps;

/* Positions of free rows are chained from *_free; rows below n_* have been used at least once. */
struct pto_deps {
    access *accesses;
    age *ages;                 /* with keeps_ages */
    region *regions;
    pto_box *boxes;            /* of regions, from 0; lo is the free list */
    space *spaces;
    group *groups;
    int32_t *chains;           /* heads of the chains of cells, a power of two */
    int32_t *group_chains;
    int32_t *covered;          /* regions that the current task covers */
    int64_t accesses_capacity, ages_capacity, regions_capacity, boxes_capacity, spaces_capacity, groups_capacity, covered_capacity;
    int64_t chains_size, group_chains_size;
    int32_t chains_bits;       /* chains_size is 1 << this */
    int64_t n_accesses, n_regions, n_boxes, n_spaces, n_groups, n_covered;
    int64_t live_regions, live_groups;
    int32_t accesses_free, regions_free, boxes_free, spaces_free, groups_free;
    int32_t oldest, newest;    /* accesses */
    bool keeps_ages;           /* something prunes */
    int32_t last_group;        /* most tasks stay within one */
};

/* Where a region begins, in the rows, columns and cells of its space. */
typedef struct place {
    int64_t row, col;
    int64_t cell_row, cell_col;
} place;

/* Where the map files an access of a task: the region of the access, or a cell of a space. The cell is valid while the space keeps its
   grid of cells. */
typedef struct filed {
    int32_t region;            /* NONE: there is none */
    int32_t space;             /* NONE: it has not been looked for */
    uint32_t hash;
    uint32_t filing;
} filed;

static inline divider pto_map_divider(int64_t by)
{
    return (divider){by, by > 0 ? UINT64_MAX / (uint64_t)by : 0};
}

/* The quotient for n >= 0: the product is at most one too small. */
static inline int64_t pto_map_divide(const divider *by, int64_t n, int64_t *rest)
{
    __extension__ typedef unsigned __int128 wide;
    int64_t q = (int64_t)((wide)(uint64_t)n * by->reciprocal >> 64);
    int64_t left = n - q * by->by;
    bool is_more = left >= by->by;
    *rest = is_more ? left - by->by : left;
    return q + is_more;
}

static inline place pto_map_place(const space *s, int64_t lo)
{
    place p = {.col = lo - s->base};
    int64_t rest;
    if (s->pitch.by != 0) {
        p.row = pto_map_divide(&s->pitch, p.col, &p.col);
        p.cell_row = pto_map_divide(&s->cell_rows, p.row, &rest);
    }
    p.cell_col = pto_map_divide(&s->cell_cols, p.col, &rest);
    return p;
}

/* Cells are numbered row by row, so those of a tensor have heads of their own, next to each other. An odd number of columns,
   and a step aside after each time around the heads, keep apart those that lie a power of two from one another. */
static inline uint32_t pto_map_hash(const space *s, int64_t cell_row, int64_t cell_col)
{
    uint64_t cell = (uint64_t)cell_row * s->cell_steps + (uint64_t)cell_col;
    return (uint32_t)(cell + (cell >> 32)) + s->seed;
}

static inline int32_t *pto_map_head(const pto_deps *d, uint32_t hash)
{
    return &d->chains[(hash + (hash >> d->chains_bits)) & (uint32_t)(d->chains_size - 1)];
}

static inline bool pto_map_has_shape(const pto_box *a, const pto_box *b)       /* both from 0 */
{
    return a->hi == b->hi && a->width == b->width && a->n_dims == b->n_dims &&
           (a->n_dims == 0 || (a->stride[0] == b->stride[0] && a->count[0] == b->count[0] &&
                               (a->n_dims == 1 || (a->stride[1] == b->stride[1] && a->count[1] == b->count[1]))));
}

/* Find the cell of a box that is a tile of a space's grid, and count the box among the tiles of the space; false for any other box. Two
   tiles of one grid are equal or apart: columns are counted from the first tile to both sides, and all tiles of a row together are no wider
   than the pitch, so no tile begins in the row of another tile. */
static inline bool pto_map_take_tile(space *s, const pto_shape *shape, int64_t lo, int64_t *cell_row, int64_t *cell_col)
{
    int64_t col = lo - s->base, width = shape->width, rest;
    if (shape->id != s->tile_id) {
        if (!pto_map_has_shape(&shape->box, &s->tile))
            return false;
        s->tile_id = shape->id;
    }
    *cell_row = 0;
    if (s->tile_pitch.by == 0) {
        *cell_col = pto_map_divide(&s->cell_cols, col, &rest);
        return rest == 0;
    }
    *cell_row = pto_map_divide(&s->tile_pitch, col, &col);
    int64_t to_left = 0;
    if (col >= s->pitch.by) {          /* it begins in the last row before its own */
        to_left = s->pitch.by;
        col -= s->tile_pitch.by - to_left;
        if (col < 0)
            return false;
    }
    *cell_col = pto_map_divide(&s->cell_cols, col, &rest);
    col -= to_left;
    if (to_left != 0 ? col % width != 0 : rest != 0)
        return false;
    if (col < s->left || col + width > s->right) {
        int64_t left = col < s->left ? col : s->left, right = col + width > s->right ? col + width : s->right;
        if (right - left > s->pitch.by)
            return false;
        s->left = left;
        s->right = right;
    }
    return true;
}

static inline const pto_box *pto_map_box(const pto_deps *d, const region *r)
{
    return r->box == NONE ? &d->spaces[r->space].tile : &d->boxes[r->box];
}

#pragma GCC visibility pop

#endif
