// What the host runtime and the emulated core tell each other about one block of one task.
//
// A kernel is a shared object of its own. Beside `kernel_entry` it exports the two functions below, which the emulated instructions
// bring with them. The host runtime calls begin, kernel_entry, end for every block; each of them throws std::runtime_error for
// what a device would do wrong or not do at all.
//
// Every file of a package is compiled with -DPTO_HOST_FAMILY_A5=0 (a2a3) or 1 (a5), and orchestrations also with
// -DPTO_HOST_BUILD_GRAPH=0 (runtime tensormap_and_ringbuffer) or 1 (host_build_graph).
#pragma once

#include <cstdint>

#include "tensor.h"

constexpr int kMaxTaskTensors = rules::k_tensors;
constexpr int kMaxTaskScalars = rules::k_scalars;

// kernel_entry's args: descriptors, then scalars, and at these places what get_block_idx(args) and get_block_num(args) return.
constexpr int kBlockIdxSlot = kMaxTaskTensors + kMaxTaskScalars;
constexpr int kBlockNumSlot = kBlockIdxSlot + 1;
constexpr int kTaskSlots = kBlockNumSlot + 1;

struct HostTask {
    bool cube;                           // runs on a cube core, else on a vector core
    int n_tensors;
    const ChipTensor *const *tensors;    // nothing but the elements of these may be touched
    const bool *writable;
};

extern "C" void pto_emulator_begin(const HostTask *task);
extern "C" void pto_emulator_end();
