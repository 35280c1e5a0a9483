/* sanitize_memory.h: regions inside their tensors, and what is known of tensors that nobody has given contents. */
#ifndef PTO_SANITIZE_MEMORY_H
#define PTO_SANITIZE_MEMORY_H
#include "state.h"

#pragma GCC visibility push(hidden)

/* The memory that an argument of a task may use: of its tensor as bound, or of its fresh tensor. False: not known. */
bool pto_sanitize_memory(const pto_sanitizer *s, const pto_record *record, int64_t task, int32_t arg, char **lo, char **hi);

int32_t pto_shadows_start(pto_sanitizer *s);               /* poison what a run finds without contents */
void pto_shadows_forget(pto_sanitizer *s);                 /* the fresh tensors of tasks that are dropped */
void pto_shadows_free(pto_sanitizer *s);
/* NULL: its contents were given. False: no memory. */
bool pto_sanitize_shadow(pto_sanitizer *s, const pto_record *record, int64_t task, int32_t arg, pto_shadow **out);
int32_t pto_sanitize_regions(pto_sanitizer *s, const pto_record *record, int64_t first_task);      /* PTO_E_MISUSE */
void pto_sanitize_blame(pto_sanitizer *s, const pto_record *record, int64_t task, int32_t kind, int32_t arg, int64_t row,
                        int64_t col, int64_t n);
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

#pragma GCC visibility pop

#endif
