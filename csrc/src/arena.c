/* arena.c: the memory of fresh tensors.

   A block lives as long as the record keeps its tasks, because a kept record is executed again. What has been released goes
   when the tasks are dropped; rows of the table, and with them the alias groups, are used again only then. */
#include "internal.h"

enum { ALIGNMENT = 64, NO_ROW = -1 };

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

void pto_arena_init(pto_arena *arena, int64_t max_bytes, bool poison)
{
    *arena = (pto_arena){.max_bytes = max_bytes, .poison = poison, .first_free = NO_ROW};
}

static void free_row(pto_arena *arena, int32_t row)
{
    pto_block *block = &arena->blocks[row];
    free(block->data);
    *block = (pto_block){.next_free = arena->first_free};
    arena->first_free = row;
}

void pto_arena_drop(pto_arena *arena)
{
    for (int64_t i = 0; i < arena->n_released; i++)
        free_row(arena, arena->released[i]);
    arena->n_released = 0;
    arena->released_bytes = 0;
}

void pto_arena_reset(pto_arena *arena)
{
    for (int64_t i = 0; i < arena->n; i++)
        free(arena->blocks[i].data);
    arena->n = arena->n_released = 0;
    arena->open_bytes = arena->released_bytes = 0;
    arena->first_free = NO_ROW;
}

void pto_arena_free(pto_arena *arena)
{
    pto_arena_reset(arena);
    free(arena->blocks);
    free(arena->released);
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
    return arena->n_released > 0 && arena->released_bytes > arena->max_bytes - open - bytes;
}

int32_t pto_arena_fresh(pto_arena *arena, int64_t bytes, pto_tensor *out)
{
    int32_t row = arena->first_free;
    if (row == NO_ROW && (arena->n >= INT32_MAX - 2 || !PTO_RESERVE(arena->blocks, arena->capacity, arena->n + 1)))
        return PTO_E_NOMEM;
    char *data = aligned_alloc(ALIGNMENT, (size_t)bytes);
    if (data == NULL)
        return PTO_E_NOMEM;
    if (arena->poison)
        memset(data, 0xff, (size_t)bytes);
    if (row == NO_ROW)
        row = (int32_t)arena->n++;
    else
        arena->first_free = arena->blocks[row].next_free;
    arena->blocks[row] = (pto_block){.data = data, .bytes = bytes};
    arena->open_bytes += bytes;
    out->data = data;
    out->buffer = buffer_of(row);
    return PTO_OK;
}

int32_t pto_arena_release(pto_arena *arena, int32_t buffer)
{
    int64_t row = -2 - (int64_t)buffer;
    if (row < 0 || row >= arena->n || arena->blocks[row].data == NULL || arena->blocks[row].released)
        return PTO_E_ARGUMENT;
    if (!PTO_RESERVE(arena->released, arena->released_capacity, arena->n_released + 1))
        return PTO_E_NOMEM;
    pto_block *block = &arena->blocks[row];
    block->released = true;
    arena->released[arena->n_released++] = (int32_t)row;
    arena->open_bytes -= block->bytes;
    arena->released_bytes += block->bytes;
    return PTO_OK;
}
