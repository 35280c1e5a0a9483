/* sanitize.h: what the files of the sanitizer share. Nothing of it is touched by a run without one. */
#ifndef PTO_SANITIZE_H
#define PTO_SANITIZE_H
#include "../engine/engine.h"

#pragma GCC visibility push(hidden)

/* Edges that say what the user wrote; the others were found in the data. */
#define PTO_EDGE_STRUCTURE (PTO_EDGE_ORDER | PTO_EDGE_AFTER | PTO_EDGE_CHANNEL | PTO_EDGE_EVENT | PTO_EDGE_LANE)

/* Nodes whose order is kept, of a whole run: about 40 bytes each. What comes later is counted as not checked. */
#define PTO_ORDER_NODES (1 << 23)
/* Steps that questions about order may take together, for each piece of a run; a question of nested loops takes none. */
#define PTO_ORDER_KNOWN 1024           /* a power of two */
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

/* What is known of the elements of a tensor that a run finds without contents. What nobody has written is full of PTO_POISON. */
typedef struct pto_shadow {
    char *data;                /* NULL: not in use */
    uint8_t *written;          /* [n] 1 where a task has */
    int64_t n, n_unwritten, capacity;
    int32_t elem_bytes;
} pto_shadow;

#define PTO_POISON 0xff                /* NaN in every float, a bad index in every integer */
#define PTO_POISON_READ 0x33           /* the second time, of what is read: finite, so that what gives the same depends on neither */
#define PTO_POISON_LEFT 0x3a           /* the second time, of the rest */

/* Memory that is made as large as a task needs it and kept. */
typedef struct pto_room {
    char *data;
    int64_t capacity;
} pto_room;

/* ---- sanitize_bodies.c: what an own body sees instead of memory ---- */
typedef struct pto_copies {
    pto_room image;            /* what it is given */
    pto_room work;             /* what it works on */
    pto_room first;            /* what it left there the first time */
    pto_room writable;         /* 1 for the bytes of regions that it writes */
    pto_room scratch;
} pto_copies;

struct pto_sanitizer {
    pto_sanitizer_options options;     /* arrays are the caller's */
    pto_order order;
    pto_task_log log;
    pto_shadow *bound;         /* [n_tensors] */
    pto_shadow *fresh;         /* [n_fresh] by row of the arena */
    int64_t n_fresh, fresh_capacity;
    pto_room before, after, filled;    /* the regions that a task writes, from end to end */
    pto_copies copies;
    uint32_t misuse_at;        /* the node whose misuse is reported; PTO_NO_NODE: none in this piece */
    int64_t *sources;          /* of one node, while it is added */
    int64_t sources_capacity;
    pto_race races[PTO_MAX_RACES];
    pto_sanitizer_report report;
};

/* ---- sanitize.c ---- */

/* The memory that an argument of a task may use: of its tensor as bound, or of its fresh tensor. False: not known. */
bool pto_sanitize_memory(const pto_sanitizer *s, const pto_record *record, int64_t task, int32_t arg, char **lo, char **hi);
int32_t pto_sanitize_start(pto_sanitizer *s);                              /* a run begins */
int32_t pto_sanitize_piece(pto_sanitizer *s, pto_record *record);          /* before what is recorded and not run is executed */
int32_t pto_sanitize_dropped(pto_sanitizer *s, const pto_record *record);  /* before the tasks kept are forgotten */

/* ---- sanitize_memory.c ---- */
int32_t pto_shadows_start(pto_sanitizer *s);               /* poison what a run finds without contents */
void pto_shadows_forget(pto_sanitizer *s);                 /* the fresh tensors of tasks that are dropped */
void pto_shadows_free(pto_sanitizer *s);
/* NULL: its contents were given. False: no memory. */
bool pto_sanitize_shadow(pto_sanitizer *s, const pto_record *record, int64_t task, int32_t arg, pto_shadow **out);
int32_t pto_sanitize_regions(pto_sanitizer *s, const pto_record *record, int64_t first_task);      /* PTO_E_MISUSE */
void pto_sanitize_blame(pto_sanitizer *s, const pto_record *record, int64_t task, int32_t kind, int32_t arg, int64_t row,
                        int64_t col, int64_t n);
void pto_print_nowhere(pto_context *context, int32_t statement, const void *data, int32_t elem_bytes, int64_t rows, int64_t cols,
                       int64_t row_step, int64_t col_step);
bool pto_make_room(pto_room *room, int64_t bytes);

static inline bool pto_is_unwritten(const pto_shadow *shadow, const char *element)
{
    return shadow != NULL && shadow->n_unwritten > 0 && !shadow->written[(element - shadow->data) / shadow->elem_bytes];
}

static inline void pto_set_written(pto_shadow *shadow, const char *element)
{
    if (pto_is_unwritten(shadow, element)) {
        shadow->written[(element - shadow->data) / shadow->elem_bytes] = 1;
        shadow->n_unwritten--;
    }
}

/* An element of a region, by row and column. */
static inline char *pto_element(const pto_arg *arg, int64_t row, int64_t col)
{
    return arg->data + (row * arg->stride[0] + col * arg->stride[1]) * arg->elem_bytes;
}

#define PTO_EACH_ELEMENT(arg, row, col) \
    for (int64_t row = 0; row < (arg)->extent[0] && (arg)->extent[1] > 0; row++) \
        for (int64_t col = 0; col < (arg)->extent[1]; col++)

/* ---- sanitize_tasks.c ---- */

/* One task while it runs watched. */
typedef struct pto_watch {
    pto_worker *worker;
    pto_sanitizer *s;
    const pto_record *record;
    const pto_kernel *kernel;
    const pto_arg *args;
    const int64_t *scalars;
    int64_t task, n_args;
    uint32_t at;
    pto_shadow *shadows[PTO_MAX_ARGS];
} pto_watch;

int32_t pto_sanitize_task(pto_worker *worker, uint32_t at);                /* run it; what its entry returned, or 1 after a misuse */
int32_t pto_misused(const pto_watch *w, int32_t kind, int64_t arg, int64_t row, int64_t col, int64_t n);   /* 1 */

static inline bool pto_writes(const pto_arg *arg)
{
    return (arg->flags & PTO_WRITE) != 0;
}

static inline bool pto_reads(const pto_arg *arg)
{
    return (arg->flags & PTO_READ) != 0;
}

static inline bool pto_holds(const char *element, int32_t elem_bytes, int pattern)
{
    for (int32_t i = 0; i < elem_bytes; i++)
        if ((uint8_t)element[i] != pattern)
            return false;
    return true;
}

/* ---- sanitize_bodies.c ---- */
int32_t pto_sanitize_body(const pto_watch *w);

/* ---- sanitize_races.c ---- */
int32_t pto_sanitize_races(pto_sanitizer *s, const pto_record *record, int64_t begin);     /* PTO_E_RACE */
void pto_sanitize_strip(const pto_sanitizer *s, pto_record *record, int64_t begin);        /* edges that the schedule did not ask for */

#pragma GCC visibility pop

#endif
