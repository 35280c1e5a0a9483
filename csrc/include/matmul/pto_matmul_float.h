/* pto_matmul_float.h: products of f32 and f64. */
#ifdef PTO_USES_MATMUL_F32
#define PTO_MM_DTYPE f32
#define PTO_MM_ELEMENT float
#define PTO_MM_SUM float
#define PTO_MM_WORD float
#define PTO_MM_PER_WORD 1
#define PTO_MM_IN_PLACE 1
#define PTO_MM_STEP(sum, x, row) ((sum) += (x) * (row))
PTO_MATMUL_INLINE float pto_word_f32(const float *x, int64_t step)
{
    (void)step;
    return *x;
}
#include "pto_matmul_dtype.h"
#endif

#ifdef PTO_USES_MATMUL_F64
#define PTO_MM_DTYPE f64
#define PTO_MM_ELEMENT double
#define PTO_MM_SUM double
#define PTO_MM_WORD double
#define PTO_MM_PER_WORD 1
#define PTO_MM_IN_PLACE 1
#define PTO_MM_STEP(sum, x, row) ((sum) += (x) * (row))
PTO_MATMUL_INLINE double pto_word_f64(const double *x, int64_t step)
{
    (void)step;
    return *x;
}
#include "pto_matmul_dtype.h"
#endif
