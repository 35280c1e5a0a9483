// One block of one task for a caller that has neither C++ exceptions nor its structures.

#include <exception>
#include <string>
#include <vector>

#include "host_task.h"

namespace {

constexpr int kTensorSlots = 16;  // address, bytes, first element, dimensions, dtype, writable, five extents, five strides

ChipTensor tensor_of(const uint64_t *slots) {
    ChipTensor tensor{};
    tensor.buffer.addr = slots[0];
    tensor.buffer.size = slots[1];
    tensor.start_offset = slots[2];
    tensor.ndims = static_cast<uint32_t>(slots[3]);
    tensor.dtype = static_cast<DataType>(slots[4]);
    for (uint32_t dim = 0; dim < kMaxTensorDims; ++dim) {
        tensor.shapes[dim] = static_cast<uint32_t>(slots[6 + dim]);
        tensor.strides[dim] = static_cast<uint32_t>(slots[6 + kMaxTensorDims + dim]);
    }
    return tensor;
}

}  // namespace

// Return what went wrong, or null. The text lives until the next call.
extern "C" const char *pto_emulator_call(void (*entry)(int64_t *), int cube, int n_tensors, const uint64_t *described, int n_scalars,
                                         const int64_t *scalars, int block, int n_blocks) {
    static std::string error;
    ChipTensor tensors[kMaxTaskTensors];
    const ChipTensor *pointers[kMaxTaskTensors] = {};
    bool writable[kMaxTaskTensors] = {};
    std::vector<int64_t> args(kTaskSlots, 0);
    for (int i = 0; i < n_tensors; ++i) {
        tensors[i] = tensor_of(described + i * kTensorSlots);
        pointers[i] = &tensors[i];
        writable[i] = described[i * kTensorSlots + 5] != 0;
        args[i] = reinterpret_cast<int64_t>(&tensors[i]);
    }
    for (int i = 0; i < n_scalars; ++i) args[n_tensors + i] = scalars[i];
    args[kBlockIdxSlot] = block;
    args[kBlockNumSlot] = n_blocks;
    const HostTask task{cube != 0, n_tensors, pointers, writable};
    try {
        pto_emulator_begin(&task);
        entry(args.data());
        pto_emulator_end();
    } catch (const std::exception &fault) {
        error = fault.what();
        return error.c_str();
    }
    return nullptr;
}
