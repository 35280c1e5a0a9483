/* arena.h: the memory of fresh tensors, each an alias group of its own (negative, so never that of a bound tensor). The record owns the
   arena, the arena owns its chunks. Units: bytes; tasks and nodes by absolute number. */
#ifndef PTO_ARENA_H
#define PTO_ARENA_H
#include <stdbool.h>
#include <stdint.h>

#include "pto_wsp.h"

#pragma GCC visibility push(hidden)

typedef struct pto_block {
    char *data;                /* NULL: the row is free */
    char *place;               /* in a chunk: data, or with poison only what is counted */
    int64_t bytes;
    int64_t end_task;          /* of a released one: its users are tasks and nodes before these */
    int64_t end_node;
    int32_t next_free;
    bool released;
} pto_block;

typedef struct pto_gap {
    char *data;
    int64_t bytes;
} pto_gap;

typedef struct pto_arena {
    pto_block *blocks;
    int64_t n;
    int64_t capacity;
    int32_t *released;         /* rows of blocks that go with the tasks kept, in the order of their release */
    int64_t n_released;
    int64_t n_retired;         /* of these, whose memory is for others */
    int64_t released_capacity;
    char **chunks;
    int64_t n_chunks;
    int64_t chunks_capacity;
    pto_gap *gaps;             /* memory that nobody uses, by address */
    int64_t n_gaps;
    int64_t gaps_capacity;
    int64_t open_bytes;
    int64_t released_bytes;    /* not retired */
    int64_t poisoned_bytes;    /* retired, and with poison nobody's */
    int64_t peak_bytes;        /* most of both at a time */
    int64_t held_bytes;        /* all chunks */
    int64_t max_bytes;
    int32_t first_free;        /* row, -1: none */
    bool poison;
} pto_arena;

void pto_arena_init(pto_arena *arena, int64_t max_bytes, bool poison);
void pto_arena_free(pto_arena *arena);
void pto_arena_reset(pto_arena *arena);                    /* gives all memory back */
void pto_arena_drop(pto_arena *arena);                     /* makes gaps of all that has been released */
void pto_arena_poison(pto_arena *arena);                   /* every block, where asked for */
bool pto_arena_is_full(const pto_arena *arena, int64_t bytes);         /* and a drop would help */
int64_t pto_tensor_bytes(int32_t elem_bytes, int32_t rank, const int64_t *dims);   /* of a block; -1: no such tensor */
int32_t pto_arena_fresh(pto_arena *arena, int64_t bytes, pto_tensor *out);      /* its data and buffer */
/* PTO_E_ARGUMENT: no open block of this arena */
int32_t pto_arena_release(pto_arena *arena, int32_t buffer, int64_t end_task, int64_t end_node);
/* Make gaps of released blocks, from the oldest on: of those whose users come before end_task; until no more than `left` bytes are in
   use. Returns the node that whoever takes such a gap has to run after all nodes before it; -1: there was none. */
int64_t pto_arena_retire_tasks(pto_arena *arena, int64_t end_task);
int64_t pto_arena_retire_bytes(pto_arena *arena, int64_t left);

#pragma GCC visibility pop

#endif
