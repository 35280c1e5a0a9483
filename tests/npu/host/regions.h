// Whether two views of one buffer share elements.
#pragma once

#include "tensor.h"

// Exact where both have the same strides, each large enough to step over the dimensions inside it; else whether the spans of memory
// from first to last element meet.
bool overlap(const ChipTensor &one, const ChipTensor &other);

// Whether the elements of `inner` surely lie in `outer`.
bool covers(const ChipTensor &outer, const ChipTensor &inner);
