/* sanitize_bodies.h: run a body that the user wrote, watched. */
#ifndef PTO_SANITIZE_BODIES_H
#define PTO_SANITIZE_BODIES_H
#include "sanitize_watch.h"

#pragma GCC visibility push(hidden)

int32_t pto_sanitize_body(const pto_watch *w);             /* what its entry returned, or 1 after a misuse */

#pragma GCC visibility pop

#endif
