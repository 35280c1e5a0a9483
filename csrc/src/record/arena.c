/* arena.c: the memory of fresh tensors.

   A tensor is a block until the record drops its tasks, because a kept record is executed again. Its memory is used again sooner, where a
   window allows that: who releases it says after which node it is no longer used, and who retires it sees to it that the tasks to come
   wait for that node. Memory comes in chunks; what nobody uses of them are gaps, by address, and the first that fits is taken. Rows of the
   table of blocks, and with them the alias groups, are used again only when tasks are dropped.

   With poison every block has memory that no other tensor ever has: gaps are then only counted, so that the same tasks wait. */
#include "arena.h"

#include "../collections/array.h"

enum { ALIGNMENT = 64, NO_ROW = -1, LEAST_CHUNK = 4096, CHUNKS_OF_ALL = 8 };

/* Row k is alias group -2 - k: bound tensors have groups from 0 on, and -1 is nobody's. */
static int32_t buffer_of(int32_t row)
{
    return -2 - row;
}

int64_t pto_tensor_bytes(int32_t elem_bytes, int32_t rank, const int64_t *dims)
{
    if (elem_bytes < 1 || rank < 0 || rank > PTO_TENSOR_RANK)
        return -1;
    int64_t bytes = elem_bytes, rounded;
    bool is_empty = false;
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return -1;
        is_empty |= dims[i] == 0;
    }
    for (int32_t i = 0; i < rank && !is_empty; i++)
        if (__builtin_mul_overflow(bytes, dims[i], &bytes))
            return -1;
    if (__builtin_add_overflow(bytes, ALIGNMENT - 1, &rounded))
        return -1;
    return rounded / ALIGNMENT * ALIGNMENT;
}

/* ---- gaps ---- */

static int64_t first_gap_that_fits(const pto_arena *arena, int64_t bytes)
{
    int64_t i = 0;
    while (i < arena->n_gaps && arena->gaps[i].bytes < bytes)
        i++;
    return i;
}

/* A place for one more gap has been reserved with the chunk or block that it comes from. */
static void add_gap(pto_arena *arena, char *data, int64_t bytes)
{
    int64_t at = 0, end = arena->n_gaps;
    while (at < end) {
        int64_t middle = at + (end - at) / 2;
        if ((uintptr_t)arena->gaps[middle].data < (uintptr_t)data)
            at = middle + 1;
        else
            end = middle;
    }
    pto_gap *gaps = arena->gaps;
    bool joins_before = at > 0 && gaps[at - 1].data + gaps[at - 1].bytes == data;
    bool joins_after = at < arena->n_gaps && data + bytes == gaps[at].data;
    if (joins_before) {
        gaps[at - 1].bytes += bytes + (joins_after ? gaps[at].bytes : 0);
        if (joins_after)
            memmove(gaps + at, gaps + at + 1, (size_t)(--arena->n_gaps - at) * sizeof *gaps);
    } else if (joins_after) {
        gaps[at] = (pto_gap){data, bytes + gaps[at].bytes};
    } else {
        memmove(gaps + at + 1, gaps + at, (size_t)(arena->n_gaps++ - at) * sizeof *gaps);
        gaps[at] = (pto_gap){data, bytes};
    }
}

/* Between two gaps lies a block, or a border of chunks. */
static bool reserve_gaps(pto_arena *arena)
{
    return PTO_RESERVE(arena->gaps, arena->gaps_capacity, arena->n + arena->n_chunks + 2);
}

/* Chunks grow with what there is, so that there are few of them and little of the last one is left over. */
static bool add_chunk(pto_arena *arena, int64_t bytes)
{
    int64_t share = arena->held_bytes / CHUNKS_OF_ALL, size = bytes;
    share = share < LEAST_CHUNK ? LEAST_CHUNK : share;
    if (share > bytes)
        size = share / bytes * bytes;
    if (!PTO_RESERVE(arena->chunks, arena->chunks_capacity, arena->n_chunks + 1) || !reserve_gaps(arena))
        return false;
    char *data = aligned_alloc(ALIGNMENT, (size_t)size);
    if (data == NULL)
        return false;
    arena->chunks[arena->n_chunks++] = data;
    arena->held_bytes += size;
    add_gap(arena, data, size);
    return true;
}

static char *take_memory(pto_arena *arena, int64_t bytes)
{
    int64_t at = first_gap_that_fits(arena, bytes);
    if (at == arena->n_gaps) {
        if (!add_chunk(arena, bytes))
            return NULL;
        at = first_gap_that_fits(arena, bytes);
    }
    pto_gap *gap = &arena->gaps[at];
    char *data = gap->data;
    *gap = (pto_gap){data + bytes, gap->bytes - bytes};
    if (gap->bytes == 0)
        memmove(gap, gap + 1, (size_t)(--arena->n_gaps - at) * sizeof *gap);
    return data;
}

/* ---- life ---- */

void pto_arena_init(pto_arena *arena, int64_t max_bytes, bool poison)
{
    *arena = (pto_arena){.max_bytes = max_bytes, .poison = poison, .first_free = NO_ROW};
}

static void retire(pto_arena *arena)
{
    const pto_block *block = &arena->blocks[arena->released[arena->n_retired++]];
    arena->released_bytes -= block->bytes;
    arena->poisoned_bytes += arena->poison ? block->bytes : 0;
    add_gap(arena, block->place, block->bytes);
}

static void free_row(pto_arena *arena, int32_t row)
{
    pto_block *block = &arena->blocks[row];
    if (arena->poison)
        free(block->data);
    *block = (pto_block){.next_free = arena->first_free};
    arena->first_free = row;
}

void pto_arena_drop(pto_arena *arena)
{
    while (arena->n_retired < arena->n_released)
        retire(arena);
    for (int64_t i = 0; i < arena->n_released; i++)
        free_row(arena, arena->released[i]);
    arena->n_released = arena->n_retired = 0;
    arena->poisoned_bytes = 0;
}

void pto_arena_reset(pto_arena *arena)
{
    for (int64_t i = 0; arena->poison && i < arena->n; i++)
        free(arena->blocks[i].data);
    for (int64_t i = 0; i < arena->n_chunks; i++)
        free(arena->chunks[i]);
    arena->n = arena->n_released = arena->n_retired = arena->n_chunks = arena->n_gaps = 0;
    arena->open_bytes = arena->released_bytes = arena->poisoned_bytes = arena->held_bytes = arena->peak_bytes = 0;
    arena->first_free = NO_ROW;
}

void pto_arena_free(pto_arena *arena)
{
    pto_arena_reset(arena);
    free(arena->blocks);
    free(arena->released);
    free(arena->chunks);
    free(arena->gaps);
}

void pto_arena_poison(pto_arena *arena)
{
    for (int64_t i = 0; arena->poison && i < arena->n; i++)
        if (arena->blocks[i].data != NULL)
            memset(arena->blocks[i].data, 0xff, (size_t)arena->blocks[i].bytes);
}

/* What is open must be held whatever it takes; half the arena at least is for what is released, or a program that holds much
   open would hand over at each tensor. */
bool pto_arena_is_full(const pto_arena *arena, int64_t bytes)
{
    int64_t open = arena->open_bytes < arena->max_bytes / 2 ? arena->open_bytes : arena->max_bytes / 2;
    int64_t released = arena->released_bytes + arena->poisoned_bytes;
    return released > 0 && released > arena->max_bytes - open - bytes;
}

int32_t pto_arena_fresh(pto_arena *arena, int64_t bytes, pto_tensor *out)
{
    int32_t row = arena->first_free;
    if (row == NO_ROW && (arena->n >= INT32_MAX - 2 || !PTO_RESERVE(arena->blocks, arena->capacity, arena->n + 1)))
        return PTO_E_NOMEM;
    char *place = take_memory(arena, bytes), *data = place;
    if (place != NULL && arena->poison && (data = aligned_alloc(ALIGNMENT, (size_t)bytes)) != NULL)
        memset(data, 0xff, (size_t)bytes);
    if (data == NULL)
        return PTO_E_NOMEM;
    if (row == NO_ROW)
        row = (int32_t)arena->n++;
    else
        arena->first_free = arena->blocks[row].next_free;
    arena->blocks[row] = (pto_block){.data = data, .place = place, .bytes = bytes};
    arena->open_bytes += bytes;
    if (arena->open_bytes + arena->released_bytes > arena->peak_bytes)
        arena->peak_bytes = arena->open_bytes + arena->released_bytes;
    out->data = data;
    out->buffer = buffer_of(row);
    return PTO_OK;
}

int32_t pto_arena_release(pto_arena *arena, int32_t buffer, int64_t end_task, int64_t end_node)
{
    int64_t row = -2 - (int64_t)buffer;
    if (row < 0 || row >= arena->n || arena->blocks[row].data == NULL || arena->blocks[row].released)
        return PTO_E_ARGUMENT;
    if (!PTO_RESERVE(arena->released, arena->released_capacity, arena->n_released + 1) || !reserve_gaps(arena))
        return PTO_E_NOMEM;
    pto_block *block = &arena->blocks[row];
    block->released = true;
    block->end_task = end_task;
    block->end_node = end_node;
    arena->released[arena->n_released++] = (int32_t)row;
    arena->open_bytes -= block->bytes;
    arena->released_bytes += block->bytes;
    return PTO_OK;
}

int64_t pto_arena_retire_tasks(pto_arena *arena, int64_t end_task)
{
    int64_t end_node = -1;
    while (arena->n_retired < arena->n_released) {
        const pto_block *block = &arena->blocks[arena->released[arena->n_retired]];
        if (block->end_task > end_task)
            break;
        end_node = block->end_node;
        retire(arena);
    }
    return end_node;
}

int64_t pto_arena_retire_bytes(pto_arena *arena, int64_t left)
{
    int64_t end_node = -1;
    while (arena->n_retired < arena->n_released && arena->open_bytes + arena->released_bytes > left) {
        end_node = arena->blocks[arena->released[arena->n_retired]].end_node;
        retire(arena);
    }
    return end_node;
}
