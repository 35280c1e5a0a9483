/* pto_math.h: what one element of every tile operation means in C, subject by subject.

   Every function is branch-free where the machine allows it, so a loop over it vectorises. Numbers: max, min and relu propagate
   NaN; integers wrap (compile with -fwrapv); // and % floor; an integer divided by zero gives 0; a shift by the width or more
   gives 0; float to integer saturates and NaN gives 0; rint is half to even.
   No system header: this text is compiled with every program. Needs gcc or clang, -fno-math-errno. */
#ifndef PTO_MATH_H
#define PTO_MATH_H
#include "math/pto_bits.h"
#include "math/pto_integer.h"
#include "math/pto_float.h"
#include "math/pto_cast.h"
#include "math/pto_half.h"
#include "math/pto_functions.h"
#include "math/pto_scalar.h"
#endif
