/* sanitize_races.h: look for races, and drop the edges that were only there to find them. */
#ifndef PTO_SANITIZE_RACES_H
#define PTO_SANITIZE_RACES_H
#include "state.h"

#pragma GCC visibility push(hidden)

int32_t pto_sanitize_races(pto_sanitizer *s, const pto_record *record, int64_t begin);     /* PTO_E_RACE */
void pto_sanitize_strip(const pto_sanitizer *s, pto_record *record, int64_t begin);        /* edges that the schedule did not ask for */

#pragma GCC visibility pop

#endif
