/* program.h: what the files of a stand-alone program share with one another. */
#ifndef PTO_PROGRAM_INTERNAL_H
#define PTO_PROGRAM_INTERNAL_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pto_program_tables.h"

/* Text that is written into a fixed room; what does not fit is left out. */
typedef struct pto_text {
    char *at;
    size_t room;
} pto_text;

__attribute__((format(printf, 2, 3))) void pto_say(pto_text *text, const char *format, ...);

/* Every function that returns a status has told why in result->message, unless it is PTO_OK. */
__attribute__((format(printf, 3, 4))) int32_t pto_refuse(pto_program_result *result, int32_t status, const char *format, ...);

/* ---- bind.c ---- */

/* What one run works on; freed by pto_unbind. */
typedef struct pto_bound {
    pto_tensor *tensors;       /* [n_tensors] */
    int64_t *symbols;
    void **made;               /* [n_tensors] memory made for results between tasks */
} pto_bound;

int32_t pto_bind_program(const pto_program *program, const pto_program_array *arrays, const pto_program_value *values, pto_bound *bound,
                         pto_program_result *result);
void pto_unbind(const pto_program *program, pto_bound *bound);

/* ---- contracts.c ---- */
int32_t pto_check_data(const pto_program *program, const pto_tensor *tensors, pto_program_result *result);

/* ---- failures.c: what ended a run, as text ---- */
int32_t pto_tell_failure(const pto_program *program, int32_t status, const pto_record *record, const pto_execute_result *run,
                         pto_program_result *result);
int32_t pto_tell_ended(const pto_program *program, const pto_record *record, int32_t status, const pto_sim_result *timed,
                       pto_program_result *result);

#endif
