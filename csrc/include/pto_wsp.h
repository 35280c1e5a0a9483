/* pto_wsp.h: what C code includes: guards pto_abi.h and pto_library.h, which cffi reads as they stand. */
#ifndef PTO_WSP_H
#define PTO_WSP_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#include "pto_abi.h"
#include "pto_library.h"
#ifdef __cplusplus
}
#endif
#endif
