/* pto_stream.h: stores that go past the caches, for outputs larger than these that no task reads back.

   Whole lines are written without reading them first. Such stores are not ordered with others: pto_stream_end() orders them
   before what the thread stores next, so a task calls it before it ends. Elsewhere than on x86 they are plain stores. */
#ifndef PTO_STREAM_H
#define PTO_STREAM_H
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define PTO_STREAM_LINE_(to, from) PTO_STREAM_VECTOR_(64, to, from)
#elif defined(__AVX__)
#define PTO_STREAM_LINE_(to, from) PTO_STREAM_VECTOR_(32, to, from), PTO_STREAM_VECTOR_(32, (to) + 32, (from) + 32)
#elif defined(__SSE2__)
#define PTO_STREAM_LINE_(to, from)                                                                                   \
    PTO_STREAM_VECTOR_(16, to, from), PTO_STREAM_VECTOR_(16, (to) + 16, (from) + 16),                                \
        PTO_STREAM_VECTOR_(16, (to) + 32, (from) + 32), PTO_STREAM_VECTOR_(16, (to) + 48, (from) + 48)
#endif
#if defined(__clang__)
#define PTO_STREAM_VECTOR_(n, to, from) \
    __builtin_nontemporal_store(*(const pto_stream_at_##n *)(from), (pto_stream_##n *)(to))
#elif defined(__AVX512F__)
#define PTO_STREAM_VECTOR_(n, to, from) __builtin_ia32_movntps512((float *)(to), *(const pto_stream_at_##n *)(from))
#elif defined(__AVX__)
#define PTO_STREAM_VECTOR_(n, to, from) __builtin_ia32_movntps256((float *)(to), *(const pto_stream_at_##n *)(from))
#else
#define PTO_STREAM_VECTOR_(n, to, from) __builtin_ia32_movntps((float *)(to), *(const pto_stream_at_##n *)(from))
#endif
typedef float pto_stream_64 __attribute__((vector_size(64), may_alias));
typedef float pto_stream_32 __attribute__((vector_size(32), may_alias));
typedef float pto_stream_16 __attribute__((vector_size(16), may_alias));
typedef float pto_stream_at_64 __attribute__((vector_size(64), aligned(1), may_alias));
typedef float pto_stream_at_32 __attribute__((vector_size(32), aligned(1), may_alias));
typedef float pto_stream_at_16 __attribute__((vector_size(16), aligned(1), may_alias));

/* Copy `bytes` from a block that was just computed; neither side is aligned. */
static inline __attribute__((always_inline, unused)) void pto_stream(void *target, const void *source, int64_t bytes)
{
    char *to = (char *)target;
    const char *from = (const char *)source;
#if defined(PTO_STREAM_LINE_)
    const int64_t first = -(int64_t)(uintptr_t)to & 63;    /* bytes up to a whole line */
    if (bytes >= first + 64) {
        memcpy(to, from, (size_t)first);
        for (to += first, from += first, bytes -= first; bytes >= 64; to += 64, from += 64, bytes -= 64)
            PTO_STREAM_LINE_(to, from);
    }
#endif
    memcpy(to, from, (size_t)bytes);
}

static inline __attribute__((always_inline, unused)) void pto_stream_end(void)
{
#if defined(PTO_STREAM_LINE_)
    __builtin_ia32_sfence();
#endif
}

#endif
