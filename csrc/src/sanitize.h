/* sanitize.h: what the files of the sanitizer share. Nothing of it is touched by a run without one. */
#ifndef PTO_SANITIZE_H
#define PTO_SANITIZE_H
#include "engine.h"

#pragma GCC visibility push(hidden)

/* Edges that say what the user wrote; the others were found in the data. */
#define PTO_EDGE_STRUCTURE (PTO_EDGE_ORDER | PTO_EDGE_AFTER | PTO_EDGE_CHANNEL | PTO_EDGE_EVENT)

/* Nodes whose order is kept, of a whole run: about 40 bytes each. What comes later is counted as not checked. */
#define PTO_ORDER_NODES (1 << 23)
/* Steps that questions about order may take together, for each piece of a run; a question of nested loops takes none. */
#define PTO_ORDER_STEPS (INT64_C(1) << 27)

/* ---- sanitize_order.c: which nodes come before which, by structure alone ---- */
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
    int32_t last_open, question;
    int64_t steps;             /* left */
} pto_order;

typedef enum pto_ordered { PTO_ORDER_NO, PTO_ORDER_YES, PTO_ORDER_UNKNOWN } pto_ordered;

void pto_order_free(pto_order *order);
void pto_order_reset(pto_order *order);
bool pto_order_add(pto_order *order, const int64_t *preds, int64_t n);     /* the next node; preds are earlier; false: no memory */
pto_ordered pto_order_before(pto_order *order, int64_t first, int64_t second);

/* ---- sanitize_log.c: what the tasks were that the record no longer keeps, for reports ---- */
typedef struct pto_task_log {
    int64_t *task;             /* [n] of a node; -1: none */
    int32_t *site;
    int64_t *begin;            /* [n + 1] in index */
    int64_t *index;
    int64_t n, n_index, task_capacity, site_capacity, begin_capacity, index_capacity;
} pto_task_log;

void pto_task_log_free(pto_task_log *log);
bool pto_task_log_add(pto_task_log *log, const pto_record *record);

struct pto_sanitizer {
    pto_sanitizer_options options;     /* arrays are the caller's */
    pto_order order;
    pto_task_log log;
    int64_t *sources;          /* of one node, while it is added */
    int64_t sources_capacity;
    pto_race races[PTO_MAX_RACES];
    pto_sanitizer_report report;
};

/* ---- sanitize.c ---- */

/* The memory that an argument of a task may use: of its tensor as bound, or of its fresh tensor. False: not known. */
bool pto_sanitize_memory(const pto_sanitizer *s, const pto_record *record, int64_t task, int32_t arg, char **lo, char **hi);
void pto_sanitize_start(pto_sanitizer *s);                                 /* a run begins */
int32_t pto_sanitize_piece(pto_sanitizer *s, pto_record *record);          /* before what is recorded and not run is executed */
int32_t pto_sanitize_dropped(pto_sanitizer *s, const pto_record *record);  /* before the tasks kept are forgotten */

/* ---- sanitize_races.c ---- */
int32_t pto_sanitize_races(pto_sanitizer *s, const pto_record *record, int64_t begin);     /* PTO_E_RACE */
void pto_sanitize_strip(const pto_sanitizer *s, pto_record *record, int64_t begin);        /* edges that the schedule did not ask for */

#pragma GCC visibility pop

#endif
