/* state.h: the state of a sanitizer. The caller of pto_sanitizer_new owns the sanitizer; the sanitizer owns its arrays, except those of its
   options. A run without a sanitizer touches no part of this state. */
#ifndef PTO_SANITIZER_STATE_H
#define PTO_SANITIZER_STATE_H
#include "../engine/state.h"
#include "sanitize_log.h"
#include "sanitize_order.h"

#pragma GCC visibility push(hidden)

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

/* What an own body sees instead of memory. */
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

#pragma GCC visibility pop

#endif
