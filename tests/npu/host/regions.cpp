#include "regions.h"

#include <algorithm>
#include <vector>

static uint64_t span_of(const ChipTensor &t) {
    uint64_t last = 0;
    for (uint32_t dim = 0; dim < t.ndims; ++dim) last += static_cast<uint64_t>(t.shapes[dim] - 1) * t.strides[dim];
    return last + 1;
}

bool overlap(const ChipTensor &one, const ChipTensor &other) {
    if (one.buffer.addr != other.buffer.addr || one.count() == 0 || other.count() == 0) return false;
    const uint64_t bytes_one = bytes_of(one.dtype), bytes_other = bytes_of(other.dtype);
    const bool spans_meet = one.start_offset * bytes_one < (other.start_offset + span_of(other)) * bytes_other &&
                            other.start_offset * bytes_other < (one.start_offset + span_of(one)) * bytes_one;
    if (!spans_meet || one.ndims != other.ndims || bytes_one != bytes_other) return spans_meet;
    if (!std::equal(one.strides, one.strides + one.ndims, other.strides)) return true;

    std::vector<uint32_t> dims(one.ndims);
    for (uint32_t dim = 0; dim < one.ndims; ++dim) dims[dim] = dim;
    const auto single = [&](uint32_t dim) { return one.shapes[dim] == 1 && other.shapes[dim] == 1; };
    std::stable_sort(dims.begin(), dims.end(), [&](uint32_t a, uint32_t b) {
        return one.strides[a] != one.strides[b] ? one.strides[a] > one.strides[b] : single(a) < single(b);
    });
    uint64_t rest_one = one.start_offset, rest_other = other.start_offset, outer = 0;
    bool apart = false;
    for (uint32_t dim : dims) {
        const uint64_t stride = one.strides[dim];
        if (stride == 0) return true;
        const uint64_t at_one = rest_one / stride, at_other = rest_other / stride;
        const uint64_t end_one = at_one + one.shapes[dim], end_other = at_other + other.shapes[dim];
        if (outer != 0 && std::max(end_one, end_other) * stride > outer) return true;  // it runs into the next turn of the outer one
        apart = apart || end_one <= at_other || end_other <= at_one;
        outer = stride;
        rest_one %= stride;
        rest_other %= stride;
    }
    return !apart;
}

bool covers(const ChipTensor &outer, const ChipTensor &inner) {
    if (outer.buffer.addr != inner.buffer.addr || outer.count() == 0) return false;
    if (inner.count() == 0) return true;
    const uint64_t bytes_outer = bytes_of(outer.dtype), bytes_inner = bytes_of(inner.dtype);
    if (outer.contiguous()) {
        return outer.start_offset * bytes_outer <= inner.start_offset * bytes_inner &&
               (inner.start_offset + span_of(inner)) * bytes_inner <= (outer.start_offset + span_of(outer)) * bytes_outer;
    }
    return outer.start_offset == inner.start_offset && outer.ndims == inner.ndims && bytes_outer == bytes_inner &&
           std::equal(outer.shapes, outer.shapes + outer.ndims, inner.shapes) &&
           std::equal(outer.strides, outer.strides + outer.ndims, inner.strides);
}
