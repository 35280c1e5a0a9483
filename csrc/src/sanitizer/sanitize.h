/* sanitize.h: what a run tells its sanitizer, piece by piece. */
#ifndef PTO_SANITIZE_H
#define PTO_SANITIZE_H
#include "state.h"

#pragma GCC visibility push(hidden)

int32_t pto_sanitize_start(pto_sanitizer *s);                              /* a run begins */
int32_t pto_sanitize_piece(pto_sanitizer *s, pto_record *record);          /* before what is recorded and not run is executed */
int32_t pto_sanitize_dropped(pto_sanitizer *s, const pto_record *record);  /* before the tasks kept are forgotten */

#pragma GCC visibility pop

#endif
