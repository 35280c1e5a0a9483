/* sanitize_order.h: which nodes come before which, by structure alone. The sanitizer owns one pto_order; rows are nodes of the run, from 1. */
#ifndef PTO_SANITIZE_ORDER_H
#define PTO_SANITIZE_ORDER_H
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Nodes whose order is kept, of a whole run: about 40 bytes each. What comes later is counted as not checked. */
#define PTO_ORDER_NODES (1 << 23)
/* Steps that questions about order may take together, for each piece of a run; a question of nested loops takes none. */
#define PTO_ORDER_KNOWN 1024           /* a power of two */
#define PTO_ORDER_STEPS (INT64_C(1) << 27)
typedef struct pto_order {
    int32_t *above;            /* [n + 1] the nearest node that every way to this one goes through; row 0 stands for the start */
    int32_t *jump;             /* [n + 1] a node further up, so that climbing takes a logarithm of the height */
    int32_t *height;           /* [n + 1] */
    int32_t *since;            /* [n + 1] all nodes from this row on come before it */
    int32_t *open_before, *open_after;     /* [n + 1] a list of the nodes that nothing follows yet */
    int64_t *begin;            /* [n + 2] rows of preds of the nodes that have several */
    int32_t *preds;
    int32_t *seen;             /* [n + 1] the question that looked at it last */
    int32_t *stack;
    int64_t n, capacity, begin_capacity, n_preds, preds_capacity, stack_capacity;
    int32_t question;
    int32_t known_first[PTO_ORDER_KNOWN];      /* rows, by their number: what the last answers were about */
    int32_t known_after[PTO_ORDER_KNOWN];      /* a row that comes after it */
    int64_t steps;             /* left */
} pto_order;

typedef enum pto_ordered { PTO_ORDER_NO, PTO_ORDER_YES, PTO_ORDER_UNKNOWN } pto_ordered;

void pto_order_free(pto_order *order);
void pto_order_reset(pto_order *order);
bool pto_order_add(pto_order *order, const int64_t *preds, int64_t n);     /* the next node; preds are earlier; false: no memory */
pto_ordered pto_order_before(pto_order *order, int64_t first, int64_t second);

#pragma GCC visibility pop

#endif
