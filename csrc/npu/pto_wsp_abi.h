// pto_wsp_abi.h: where a package meets the device runtime. It is the only file that names the runtime's identifiers.
//
// A kernel defines PTO_WSP_KERNEL before it includes this file, an orchestration PTO_WSP_ORCH; each sees its own side.
#ifndef PTO_WSP_ABI_H
#define PTO_WSP_ABI_H

#if defined(PTO_WSP_KERNEL) == defined(PTO_WSP_ORCH)
#error "define one of PTO_WSP_KERNEL and PTO_WSP_ORCH before pto_wsp_abi.h"
#endif

#ifdef PTO_WSP_KERNEL

#include <cstdint>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__ [aicore]
#endif

using namespace pto;

#define PTO_WSP_INLINE inline __aicore__

namespace pto_wsp {

using Tensor = ChipTensor;

// The descriptor in slot `slot` of a task's arguments.
PTO_WSP_INLINE __gm__ Tensor *tensor(__gm__ int64_t *args, int slot) {
    return reinterpret_cast<__gm__ Tensor *>(args[slot]);
}

// Where the first element of a descriptor lies in global memory.
template <typename T>
PTO_WSP_INLINE __gm__ T *gm(__gm__ int64_t *args, int slot) {
    __gm__ Tensor *t = tensor(args, slot);
    return reinterpret_cast<__gm__ T *>(t->buffer.addr) + t->start_offset;
}

PTO_WSP_INLINE int64_t shape(__gm__ int64_t *args, int slot, int dim) {
    return static_cast<int64_t>(tensor(args, slot)->shapes[dim]);
}

// In elements.
PTO_WSP_INLINE int64_t stride(__gm__ int64_t *args, int slot, int dim) {
    return static_cast<int64_t>(tensor(args, slot)->strides[dim]);
}

// A scalar argument that was added as a float: its bits are the low half of the slot.
PTO_WSP_INLINE float f32(__gm__ int64_t *args, int slot) {
    union {
        uint64_t u;
        float f;
    } bits;
    bits.u = static_cast<uint64_t>(args[slot]);
    return bits.f;
}

}  // namespace pto_wsp

#endif  // PTO_WSP_KERNEL

#ifdef PTO_WSP_ORCH

#include <stddef.h>
#include <stdint.h>

#include "pto_orchestration_api.h"

#define PTO_WSP_INLINE static inline

#endif  // PTO_WSP_ORCH

// ---- scalar expressions: 64-bit integers as Python computes them; 0 where it would divide by zero ----

PTO_WSP_INLINE int64_t pto_scalar_min_i64(int64_t a, int64_t b) { return b < a ? b : a; }
PTO_WSP_INLINE int64_t pto_scalar_max_i64(int64_t a, int64_t b) { return b > a ? b : a; }
PTO_WSP_INLINE int64_t pto_scalar_floordiv_i64(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}
PTO_WSP_INLINE int64_t pto_scalar_mod_i64(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

#endif  // PTO_WSP_ABI_H
