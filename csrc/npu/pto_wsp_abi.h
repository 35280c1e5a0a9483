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

#ifdef PTO_WSP_BF16
#include <type_traits>
static_assert(!std::is_same<bfloat16_t, half>::value,
              "bfloat16_t is another name of half, and this kernel computes on bf16: define __STDCPP_BFLOAT16_T__");
#endif

#define PTO_WSP_INLINE inline __aicore__
#define PTO_NAN __builtin_nanf("")
#define PTO_INF __builtin_inff()

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

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <type_traits>
#include <utility>

#include "pto_orchestration_api.h"

#define PTO_WSP_INLINE static inline
#define PTO_WSP_ENTRY __attribute__((visibility("default")))
#define PTO_NAN __builtin_nan("")
#define PTO_INF __builtin_inf()

// Bounds the life of what the runtime allocates for the tasks inside; a runtime without scopes keeps it to the end.
#ifdef PTO2_SCOPE
#define PTO_WSP_SCOPE PTO2_SCOPE()
#else
#define PTO_WSP_SCOPE
#endif

namespace pto_wsp {

using Inputs = ChipTaskArgs;
using Config = PTO2OrchestrationConfig;
using Tensor = ChipTensor;
using NewTensor = TensorCreateInfo;
using Arguments = CoreTaskArgs;

// Overloads that take a lower rank are tried when those of a higher one do not fit this version of the runtime.
template <int N>
struct Rank : Rank<N - 1> {};
template <>
struct Rank<0> {};

// A constant fits the field, whatever its type.
template <int N>
Config config() {
    return Config{.expected_arg_count = N};
}

PTO_WSP_INLINE int64_t integer(const Inputs &inputs, int i) { return static_cast<int64_t>(inputs.scalar(i)); }

// A float: its bits are the low half of the slot.
PTO_WSP_INLINE double number(const Inputs &inputs, int i) {
    union {
        uint64_t u;
        float f;
    } bits;
    bits.u = static_cast<uint64_t>(inputs.scalar(i));
    return static_cast<double>(bits.f);
}

// Extents and offsets are 32-bit numbers to the runtime; `holds` has found that these fit.
PTO_WSP_INLINE uint32_t u32(int64_t value) { return static_cast<uint32_t>(value); }

PTO_WSP_INLINE auto submit_aiv(int func_id, Arguments &task) { return rt_submit_aiv_task(func_id, task); }
PTO_WSP_INLINE auto submit_aic(int func_id, Arguments &task) { return rt_submit_aic_task(func_id, task); }

// Integers and bools travel as 64 bits.
template <typename A>
auto add_integer(A &task, int64_t value, Rank<1>) -> decltype(task.add_scalar(value)) {
    return task.add_scalar(value);
}
template <typename A>
auto add_integer(A &task, int64_t value, Rank<0>) -> decltype(task.add_scalar(static_cast<uint64_t>(value))) {
    return task.add_scalar(static_cast<uint64_t>(value));
}
PTO_WSP_INLINE void add_integer(Arguments &task, int64_t value) { add_integer(task, value, Rank<1>()); }

// Says on stderr that something does not hold, and how that ends.
__attribute__((cold, noinline, unused)) static bool refuse(const char *what, int64_t found, int64_t lower, int64_t upper, const char *end) {
    fprintf(stderr, "pto_wsp: %s: found %lld, expected %lld .. %lld; %s\n", what, static_cast<long long>(found),
            static_cast<long long>(lower), static_cast<long long>(upper), end);
    return false;
}
// Before tasks are made: where it does not hold, the caller submits nothing. Behind some, of what they compute: it submits no more.
PTO_WSP_INLINE bool within(int64_t value, int64_t lower, int64_t upper, const char *what, const char *end = "no task was submitted") {
    return (value >= lower && value <= upper) || refuse(what, value, lower, upper, end);
}

#ifdef PTO_WSP_NEW_TENSORS

// Dtypes of new tensors.
namespace dtype {
constexpr DataType f32 = DataType::FLOAT32;
constexpr DataType f16 = DataType::FLOAT16;
constexpr DataType bf16 = DataType::BFLOAT16;
constexpr DataType i8 = DataType::INT8;
constexpr DataType i16 = DataType::INT16;
constexpr DataType i32 = DataType::INT32;
constexpr DataType i64 = DataType::INT64;
constexpr DataType u8 = DataType::UINT8;
constexpr DataType u16 = DataType::UINT16;
constexpr DataType u32 = DataType::UINT32;
constexpr DataType u64 = DataType::UINT64;
constexpr DataType b8 = DataType::BOOL;
constexpr DataType f8e4m3 = DataType::FP8E4M3FN;
}  // namespace dtype

// A tensor that no task writes whole: get_ref(0) of the result refers to it.
template <uint32_t N>
auto allocate(const uint32_t (&shape)[N], DataType type) {
    const NewTensor made(shape, N, type);
    return alloc_tensors(made);
}

#endif  // PTO_WSP_NEW_TENSORS

#ifdef PTO_WSP_RESHAPES

template <typename T>
auto reshaped(const T &tensor, const uint32_t *shape, uint32_t n, Rank<1>) -> decltype(tensor.reshape(shape, n)) {
    return tensor.reshape(shape, n);
}
template <typename T>
auto reshaped(const T &tensor, const uint32_t *shape, uint32_t n, Rank<0>) -> decltype(tensor.reshape(n, shape)) {
    return tensor.reshape(n, shape);
}
// The elements of a contiguous tensor in another shape.
template <uint32_t N>
Tensor reshape(const Tensor &tensor, const uint32_t (&shape)[N]) {
    return reshaped(tensor, shape, N, Rank<1>());
}

#endif  // PTO_WSP_RESHAPES

#ifdef PTO_WSP_ELEMENTS

// One element of a tensor; waits for the task that writes it.
template <typename T, typename... I>
T element(const Tensor &tensor, I... index) {
    const uint32_t at[] = {u32(index)...};
    return get_tensor_data<T>(tensor, sizeof...(I), at);
}

#endif  // PTO_WSP_ELEMENTS

#ifdef PTO_WSP_HALVES

// The nearest number of a narrower float type, ties to even: `digits` of significand, a smallest step of 2^lowest, a largest number.
PTO_WSP_INLINE double rounded(double value, int digits, int lowest, double largest) {
    if (!(value - value == 0.0) || value == 0.0) return value;  // not finite, or zero
    int exponent;
    frexp(value, &exponent);
    const int step = exponent - digits > lowest ? exponent - digits : lowest;
    const double found = ldexp(nearbyint(ldexp(value, -step)), step);
    return fabs(found) > largest ? copysign(PTO_INF, found) : found;
}
PTO_WSP_INLINE float round_f16(double value) { return static_cast<float>(rounded(value, 11, -24, 65504.0)); }
PTO_WSP_INLINE float round_bf16(double value) { return static_cast<float>(rounded(value, 8, -133, 0x1.fep127)); }

#endif  // PTO_WSP_HALVES

#ifdef PTO_WSP_EDGES

using TaskId = PTO2TaskId;

// A growing array of things that can be copied byte by byte.
template <typename T>
class List {
  public:
    static_assert(std::is_trivially_copyable<T>::value, "ids of tasks are kept as plain bytes");
    List() = default;
    List(const List &other) { add(other); }
    List &operator=(const List &other) {
        if (this != &other) {
            n_ = 0;
            add(other);
        }
        return *this;
    }
    ~List() { free(items_); }
    uint32_t size() const { return n_; }
    T *data() { return items_; }
    const T &operator[](uint32_t i) const { return items_[i]; }
    void clear() { n_ = 0; }
    bool is(const List &other) const { return n_ == other.n_ && (n_ == 0 || memcmp(items_, other.items_, n_ * sizeof(T)) == 0); }
    void add(const T &item) {
        if (n_ == capacity_) grow();
        memcpy(static_cast<void *>(items_ + n_++), static_cast<const void *>(&item), sizeof item);
    }
    void add(const List &others) {
        for (uint32_t i = 0; i < others.n_; ++i) add(others[i]);
    }
    // Fills the place of item i with the last one.
    void drop(uint32_t i) { memmove(static_cast<void *>(items_ + i), static_cast<const void *>(items_ + --n_), sizeof(T)); }

  private:
    void grow() {
        capacity_ = capacity_ == 0 ? 16 : 2 * capacity_;
        void *const room = realloc(static_cast<void *>(items_), capacity_ * sizeof(T));
        if (room == nullptr) {
            fprintf(stderr, "pto_wsp: no memory for %u tasks\n", static_cast<unsigned>(capacity_));
            abort();
        }
        items_ = static_cast<T *>(room);
    }
    T *items_ = nullptr;
    uint32_t n_ = 0, capacity_ = 0;
};

using Ids = List<TaskId>;

// The task starts behind those of `behind`, which stays as it is until the submit.
inline void wait_for(Arguments &task, Ids &behind) {
    if (behind.size() > 0) task.set_dependencies(behind.data(), behind.size());
}

// So many ids that several tasks wait for are worth a task that joins them: else each of those tasks has an edge from each of them.
constexpr uint32_t kWorthJoining = 16;

// Replaces many ids by that of one task without a kernel, which waits for them.
inline void join(Ids &ids) {
    if (ids.size() <= kWorthJoining) return;
    Arguments waits;
    wait_for(waits, ids);
    const auto made = rt_submit_dummy_task(waits);
    ids.clear();
    ids.add(made.task_id());
}

// The tasks that have read a tensor of N dimensions since it was last written there: the runtime orders a write behind earlier writes,
// not behind reads.
template <uint32_t N>
class Readers {
  public:
    void add(const TaskId &id, const uint32_t *shape, const uint32_t *at = nullptr) {
        Reader reader{{}, id};
        for (uint32_t d = 0; d < N; ++d) reader.box[d] = {at ? at[d] : 0, (at ? at[d] : 0) + shape[d]};
        readers_.add(reader);
    }
    // Adds those that a write of this part waits for.
    void find(Ids &behind, const uint32_t *shape, const uint32_t *at = nullptr) const {
        for (uint32_t i = 0; i < readers_.size(); ++i) {
            bool meets = true;
            for (uint32_t d = 0; d < N; ++d) {
                const uint32_t low = at ? at[d] : 0, high = low + shape[d];
                const Span &span = readers_[i].box[d];
                meets = meets && low < span.end && span.begin < high && low < high && span.begin < span.end;
            }
            if (meets) behind.add(readers_[i].id);
        }
    }
    // This part was written: who writes there next waits for that writer, which has waited for the readers.
    void written(const uint32_t *shape, const uint32_t *at = nullptr) {
        for (uint32_t i = readers_.size(); i-- > 0;) {
            bool inside = true;
            for (uint32_t d = 0; d < N; ++d) {
                const uint32_t low = at ? at[d] : 0, high = low + shape[d];
                const Span &span = readers_[i].box[d];
                inside = inside && low <= span.begin && span.end <= high;
            }
            if (inside) readers_.drop(i);
        }
    }

  private:
    struct Span {
        uint32_t begin, end;
    };
    struct Reader {
        Span box[N];
        TaskId id;
    };
    List<Reader> readers_;
};

#endif  // PTO_WSP_EDGES

}  // namespace pto_wsp

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

#ifdef PTO_WSP_KERNEL

// Kernels compute real numbers in single precision: a core has no doubles.
PTO_WSP_INLINE float pto_scalar_min_f32(float a, float b) { return a != a || b != b ? PTO_NAN : b < a ? b : a; }
PTO_WSP_INLINE float pto_scalar_max_f32(float a, float b) { return a != a || b != b ? PTO_NAN : b > a ? b : a; }
PTO_WSP_INLINE float pto_scalar_floordiv_f32(float a, float b) {
    const float quotient = a / b;
    if (!(quotient > -8388608.0f && quotient < 8388608.0f)) return quotient;  // whole already, or no number
    const float whole = static_cast<float>(static_cast<int64_t>(quotient));
    return whole > quotient ? whole - 1.0f : whole;
}
PTO_WSP_INLINE float pto_scalar_mod_f32(float a, float b) { return a - b * pto_scalar_floordiv_f32(a, b); }  // with the sign of b

#endif  // PTO_WSP_KERNEL

#ifdef PTO_WSP_ORCH

PTO_WSP_INLINE double pto_scalar_min_f64(double a, double b) { return a != a || b != b ? PTO_NAN : b < a ? b : a; }
PTO_WSP_INLINE double pto_scalar_max_f64(double a, double b) { return a != a || b != b ? PTO_NAN : b > a ? b : a; }
PTO_WSP_INLINE double pto_scalar_mod_f64(double a, double b) {  // with the sign of b
    if (b == 0.0) return PTO_NAN;
    const double rest = fmod(a, b);
    if (rest == 0.0) return copysign(0.0, b);
    return (b < 0.0) != (rest < 0.0) ? rest + b : rest;
}
PTO_WSP_INLINE double pto_scalar_floordiv_f64(double a, double b) {
    if (b == 0.0) return a / b;
    const double quotient = (a - pto_scalar_mod_f64(a, b)) / b;
    if (quotient == 0.0) return copysign(0.0, a / b);
    const double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

#endif  // PTO_WSP_ORCH

#endif  // PTO_WSP_ABI_H
