/* pto_orchestrator.h: what every generated orchestrator calls: binding a view, failing a check, scalar arithmetic. */
#ifndef PTO_ORCHESTRATOR_H
#define PTO_ORCHESTRATOR_H
#include <string.h>
#include "pto_wsp.h"
#include "pto_math.h"

/* An orchestrator is long and straight, and runs once for many tasks: optimising it as a kernel is optimised would take most of the
   time that a build takes (its points-to analysis grows with the square of the number of statements). */
#if defined __GNUC__ && !defined __clang__
#define PTO_ORCHESTRATOR __attribute__((optimize("O1", "no-tree-pta")))
#else
#define PTO_ORCHESTRATOR
#endif

/* The value of a 64-bit slot that holds the bits of a double, and the other way round. */
static inline double pto_slot_f64(int64_t slot)
{
    double value;
    memcpy(&value, &slot, sizeof value);
    return value;
}

static inline int64_t pto_f64_slot(double value)
{
    int64_t slot;
    memcpy(&slot, &value, sizeof slot);
    return slot;
}

static inline void pto_bind(pto_arg *arg, const pto_tensor *tensor, int64_t offset, int64_t rows, int64_t cols,
                            int64_t row_stride, int64_t col_stride, int32_t flags, int32_t elem_bytes)
{
    arg->data = tensor->data + offset * elem_bytes;
    arg->extent[0] = rows;
    arg->extent[1] = cols;
    arg->stride[0] = row_stride;
    arg->stride[1] = col_stride;
    arg->buffer = tensor->buffer;
    arg->flags = flags;
    arg->elem_bytes = elem_bytes;
    arg->reserved = 0;
}

/* FNV-1a-64 of the eight little-endian bytes of key, mod n (both unsigned); 0 when n is 0. */
static inline int64_t pto_scalar_hashmod_i64(int64_t key, int64_t n)
{
    uint64_t state = UINT64_C(0xCBF29CE484222325);
    for (int k = 0; k < 8; ++k)
        state = (state ^ (((uint64_t)key >> (8 * k)) & 0xFF)) * UINT64_C(0x100000001B3);
    return n ? (int64_t)(state % (uint64_t)n) : 0;
}

static inline int pto_within(int64_t value, int64_t lower, int64_t upper)
{
    return value >= lower && value <= upper;
}

/* Wait until elements that are about to be read have been written (where edges are inferred: by whoever writes them), and the nodes in
   `order` have completed, which come before in program order. Returns the node of the wait, or -1. */
static __attribute__((unused)) int64_t pto_wait(pto_sink *sink, int32_t stream, const pto_arg *reads, int32_t n_reads,
                                                const int64_t *order, int32_t n_order)
{
    const pto_mark mark = {.stream = stream,
                           .flags = PTO_MARK_BLOCKS | PTO_MARK_NOW,
                           .why = PTO_EDGE_READ,
                           .stall = PTO_STALL_READ,
                           .site = -1,
                           .n_order = n_order,
                           .n_args = n_reads,
                           .order = order,
                           .args = reads};
    return sink->mark(sink, &mark);
}

/* Note that the run is cancelled. Returns the status to return. */
static __attribute__((cold, noinline, unused)) int32_t pto_cancelled(pto_sink *sink)
{
    if (sink->status == PTO_OK)
        sink->status = PTO_E_CANCELLED;
    return sink->status;
}

/* Report a failed check; loops are the values of the loop variables around it. Returns the status to return. */
static __attribute__((cold, noinline, unused)) int32_t pto_fail(pto_sink *sink, int32_t guard, int64_t found, int64_t lower,
                                                               int64_t upper, const int64_t *loops, int32_t n_loops)
{
    pto_guard report = {guard, n_loops < PTO_MAX_INDEX ? n_loops : PTO_MAX_INDEX, found, lower, upper, {0}};
    for (int32_t k = 0; k < report.n_index; ++k)
        report.index[k] = loops[k];
    sink->fail(sink, &report);
    return sink->status;
}

#endif
