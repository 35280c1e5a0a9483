/* marks.h: the sink functions of marks, of fresh tensors and of the report of a deadlock. */
#ifndef PTO_MARKS_H
#define PTO_MARKS_H
#include "state.h"

#pragma GCC visibility push(hidden)

int64_t pto_sink_mark(pto_sink *sink, const pto_mark *mark);
int32_t pto_sink_fresh(pto_sink *sink, pto_tensor *out, int32_t elem_bytes, int32_t rank, const int64_t *dims);
int32_t pto_sink_release(pto_sink *sink, const pto_tensor *tensor);
int32_t pto_sink_stuck(pto_sink *sink, const pto_stuck *rows, int32_t n);

#pragma GCC visibility pop

#endif
