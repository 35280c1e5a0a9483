/* pto_program.h: what C code includes to run a saved program: guards pto_program_api.h, which cffi reads as it stands. */
#ifndef PTO_PROGRAM_H
#define PTO_PROGRAM_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#include "pto_program_api.h"
#ifdef __cplusplus
}
#endif
#endif
