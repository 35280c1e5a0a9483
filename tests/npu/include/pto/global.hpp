// Tensors in global memory: five dimensions, each of Shape and Stride a constant or -1 for one that the constructor is given.
#pragma once

#include "types.hpp"

namespace pto {
inline namespace PTO_EMU_FAMILY {

template <int64_t... N>
struct Extents {
    static_assert(sizeof...(N) == 5, "five dimensions");
    static constexpr int kDynamic = (0 + ... + (N == -1 ? 1 : 0));
    int64_t value[5] = {N...};

    Extents() = default;
    template <typename First, typename... Rest>
    explicit Extents(First first, Rest... rest) {
        constexpr int given = 1 + static_cast<int>(sizeof...(rest));
        static_assert(given == kDynamic || given == 5, "one number for each -1, or for every dimension");
        const int64_t numbers[] = {static_cast<int64_t>(first), static_cast<int64_t>(rest)...};
        for (int dim = 0, next = 0; dim < 5; ++dim) {
            if (given == 5) value[dim] = numbers[dim];
            else if (value[dim] == -1) value[dim] = numbers[next++];
        }
    }
};

template <int64_t... N>
struct Shape : Extents<N...> {
    using Extents<N...>::Extents;
};

template <int64_t... N>
struct Stride : Extents<N...> {
    using Extents<N...>::Extents;
};

template <typename T, typename ShapeType, typename StrideType, Layout LayoutValue = Layout::ND>
class GlobalTensor : public emu::GlobalState {
  public:
    using DType = T;
    explicit GlobalTensor(__gm__ T *data, const ShapeType &extents = ShapeType(), const StrideType &steps = StrideType())
        : emu::GlobalState{reinterpret_cast<uint64_t>(data), emu::DtypeOf<T>::value, LayoutValue, {}, {}} {
        for (int dim = 0; dim < 5; ++dim) {
            shape[dim] = extents.value[dim];
            stride[dim] = steps.value[dim];
        }
    }
    T *data() const { return reinterpret_cast<T *>(address); }
};

}  // namespace PTO_EMU_FAMILY
}  // namespace pto
