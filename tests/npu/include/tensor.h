// The descriptor of a tensor, as the orchestration and the kernels see it, on host memory.
//
// Offsets, extents and strides are in elements. A descriptor is a value: a view is a new one of the same buffer.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "runtime_rules.h"

enum class DataType : uint8_t {
    FLOAT32,
    FLOAT16,
    INT32,
    INT16,
    INT8,
    UINT8,
    BFLOAT16,
    INT64,
    UINT64,
    UINT16,
    UINT32,
    BOOL,
    FP8E4M3FN,
    FP8E8M0,
    FP4E2M1,
};

inline uint32_t bytes_of(DataType dtype) {
    switch (dtype) {
        case DataType::INT8:
        case DataType::UINT8:
        case DataType::BOOL:
        case DataType::FP8E4M3FN:
        case DataType::FP8E8M0:
            return 1;
        case DataType::FLOAT16:
        case DataType::BFLOAT16:
        case DataType::INT16:
        case DataType::UINT16:
            return 2;
        case DataType::FLOAT32:
        case DataType::INT32:
        case DataType::UINT32:
            return 4;
        case DataType::INT64:
        case DataType::UINT64:
            return 8;
        case DataType::FP4E2M1:
            break;  // two in a byte: no tensor of a package has it
    }
    throw std::invalid_argument("no such DataType");
}

constexpr uint32_t kMaxTensorDims = rules::k_dims;

// Tells whether the object that it is part of still is: arguments of a task are kept as pointers until it is submitted.
class HostLife {
  public:
    HostLife() { pulse_ = kAlive; }
    HostLife(const HostLife &) { pulse_ = kAlive; }
    HostLife &operator=(const HostLife &) { return *this; }
    ~HostLife() { pulse_ = 0; }
    bool alive() const { return pulse_ == kAlive; }

  private:
    static constexpr uint64_t kAlive = 0x70746f5f6c697665;
    volatile uint64_t pulse_;
};

struct ChipBuffer {
    uint64_t addr;  // of the first byte
    uint64_t size;  // in bytes
};

struct ChipTensor {
    ChipBuffer buffer;
    uint64_t start_offset;
    uint32_t ndims;
    uint32_t shapes[kMaxTensorDims];
    uint32_t strides[kMaxTensorDims];
    DataType dtype;
    HostLife life{};  // of tests only

    // The part of `shape` elements from `offset` on; both have an entry for each dimension. It must lie inside, or be empty.
    ChipTensor view(const uint32_t *shape, const uint32_t *offset) const {
        ChipTensor part = *this;
        for (uint32_t dim = 0; dim < ndims; ++dim) {
            if (static_cast<uint64_t>(offset[dim]) + shape[dim] > shapes[dim]) {
                rules::refuse(rules::inside, "view: dimension " + std::to_string(dim) + ": " + std::to_string(offset[dim]) + " + " +
                                                 std::to_string(shape[dim]) + " in an extent of " + std::to_string(shapes[dim]));
            }
            part.shapes[dim] = shape[dim];
            part.start_offset += static_cast<uint64_t>(offset[dim]) * strides[dim];
        }
        return part;
    }

    // The same elements in another shape. They must be contiguous.
    ChipTensor reshape(const uint32_t *shape, uint32_t n) const {
        if (n == 0 || n > kMaxTensorDims) rules::refuse(rules::dims, "reshape: " + std::to_string(n));
        if (!contiguous()) throw std::invalid_argument("reshape: the elements are not contiguous");
        ChipTensor other = *this;
        other.ndims = n;
        uint64_t stride = 1;
        for (uint32_t dim = n; dim-- > 0;) {
            other.shapes[dim] = shape[dim];
            other.strides[dim] = static_cast<uint32_t>(stride);
            stride *= shape[dim];
        }
        if (stride != count()) throw std::invalid_argument("reshape: the number of elements is not the same");
        return other;
    }

    // Two dimensions exchanged.
    ChipTensor transpose(uint32_t one, uint32_t two) const {
        if (one >= ndims || two >= ndims) throw std::invalid_argument("transpose: no such dimension");
        ChipTensor other = *this;
        other.shapes[one] = shapes[two];
        other.shapes[two] = shapes[one];
        other.strides[one] = strides[two];
        other.strides[two] = strides[one];
        return other;
    }

    // Every `step`-th element of one dimension, from `start` up to but without `stop`.
    ChipTensor slice(uint32_t dim, uint32_t start, uint32_t stop, uint32_t step = 1) const {
        if (dim >= ndims || step == 0 || start > stop || stop > shapes[dim]) throw std::out_of_range("slice lies outside");
        ChipTensor part = *this;
        part.shapes[dim] = (stop - start + step - 1) / step;
        part.start_offset += static_cast<uint64_t>(start) * strides[dim];
        part.strides[dim] = strides[dim] * step;
        return part;
    }

    uint64_t count() const {
        uint64_t n = 1;
        for (uint32_t dim = 0; dim < ndims; ++dim) n *= shapes[dim];
        return n;
    }

    bool contiguous() const {
        uint64_t stride = 1;
        for (uint32_t dim = ndims; dim-- > 0;) {
            if (shapes[dim] != 1 && strides[dim] != stride) return false;
            stride *= shapes[dim];
        }
        return true;
    }
};
