/* heap.h: ready nodes of a worker by priority. The pool owns the rows. */
#ifndef PTO_HEAP_H
#define PTO_HEAP_H
#include "state.h"

#pragma GCC visibility push(hidden)

void pto_heap_clear(pto_heap *heap, pto_ready *rows);      /* rows: room for all that are ever in it */
void pto_heap_push(pto_pool *pool, pto_heap *heap, const pto_batch *batch);
uint32_t pto_heap_pop(pto_heap *heap);                     /* PTO_NO_NODE: it is empty */

#pragma GCC visibility pop

#endif
