/* joins.h: open joins: reusable lists of nodes. The record owns pto_joins, which owns the lists. */
#ifndef PTO_JOINS_H
#define PTO_JOINS_H
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef struct pto_join {
    int64_t *nodes;
    int64_t n;
    int64_t capacity;
    int64_t next_free;         /* -2 while open */
} pto_join;

typedef struct pto_joins {
    pto_join *data;
    int64_t n;
    int64_t capacity;
    int64_t first_free;        /* -1: none */
} pto_joins;

void pto_joins_free(pto_joins *joins);
void pto_joins_reset(pto_joins *joins);                    /* closes all, keeps their memory */
int64_t pto_joins_open(pto_joins *joins);                  /* -1: no memory */
pto_join *pto_joins_get(pto_joins *joins, int64_t join);   /* NULL unless open */
void pto_joins_close(pto_joins *joins, int64_t join);

#pragma GCC visibility pop

#endif
