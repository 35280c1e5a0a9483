/* pto_wsp.h: what C code includes: guards pto_abi.h and pto_library.h, which cffi reads as they stand. */
#ifndef PTO_WSP_H
#define PTO_WSP_H
#include <stdint.h>
#if defined PTO_SAME_NUMBERS && (defined __FAST_MATH__ || defined __ASSOCIATIVE_MATH__ || defined __RECIPROCAL_MATH__ \
                                 || defined __NO_SIGNED_ZEROS__ || __FINITE_MATH_ONLY__ + 0)
#error "the compiler is told to compute other numbers than the program says (-ffast-math or a part of it)"
#endif
#ifdef __cplusplus
extern "C" {
#endif
#include "pto_abi.h"
#include "pto_library.h"
#ifdef __cplusplus
}
#endif
#endif
