/* pto_wsp.h: what C code includes: guards pto_abi.h, which cffi reads as it stands. */
#ifndef PTO_WSP_H
#define PTO_WSP_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#include "pto_abi.h"
#ifdef __cplusplus
}
#endif
#endif
