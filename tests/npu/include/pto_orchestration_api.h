// The interface through which an orchestration submits tasks, on host memory.
//
// It is stricter than a device: what breaks a rule of the runtime throws here, with the rule's name (see runtime_rules.h).
// PTO_HOST_FAMILY_A5 and PTO_HOST_BUILD_GRAPH say which arch and runtime it stands for; what one lacks is not declared.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "host_task.h"
#include "tensor.h"

#if !defined(PTO_HOST_FAMILY_A5) || !defined(PTO_HOST_BUILD_GRAPH)
#error "define PTO_HOST_FAMILY_A5 and PTO_HOST_BUILD_GRAPH as 0 or 1"
#endif

#define PTO_HOST_API __attribute__((visibility("default")))

struct PTO2OrchestrationConfig {
    int expected_arg_count;
};

struct PTO2TaskId {
    uint64_t raw;
};

class HostArgument {
  public:
    explicit HostArgument(const ChipTensor &tensor) : tensor_(tensor) {}
    const ChipTensor &ref() const { return tensor_; }

  private:
    const ChipTensor &tensor_;
};

// What the orchestration is given: tensors, then scalars as 64-bit slots.
class ChipTaskArgs {
  public:
    ChipTaskArgs(const ChipTensor *tensors, int n_tensors, const uint64_t *scalars, int n_scalars)
        : tensors_(tensors), scalars_(scalars), n_tensors_(n_tensors), n_scalars_(n_scalars) {}
    HostArgument tensor(int i) const {
        if (i < 0 || i >= n_tensors_) throw std::out_of_range("tensor(" + std::to_string(i) + ") of " + std::to_string(n_tensors_));
        return HostArgument(tensors_[i]);
    }
    uint64_t scalar(int i) const {
        if (i < 0 || i >= n_scalars_) throw std::out_of_range("scalar(" + std::to_string(i) + ") of " + std::to_string(n_scalars_));
        return scalars_[i];
    }
    int tensor_count() const { return n_tensors_; }
    int scalar_count() const { return n_scalars_; }

  private:
    const ChipTensor *tensors_;
    const uint64_t *scalars_;
    int n_tensors_, n_scalars_;
};

// A tensor that the runtime shall allocate. It keeps the pointer to the shape.
class TensorCreateInfo {
  public:
    TensorCreateInfo(const uint32_t *shape, uint32_t ndims, DataType dtype) : shape_(shape), ndims_(ndims), dtype_(dtype) {
        if (ndims == 0 || ndims > kMaxTensorDims) {
            rules::refuse(rules::dims, "TensorCreateInfo: " + std::to_string(ndims));
        }
    }
    const uint32_t *shape() const { return shape_; }
    uint32_t ndims() const { return ndims_; }
    DataType dtype() const { return dtype_; }
    bool alive() const { return life_.alive(); }

  private:
    const uint32_t *shape_;
    uint32_t ndims_;
    DataType dtype_;
    HostLife life_;
};

enum class HostDirection { IN = 1, OUT = 2, INOUT = 3 };

struct HostTaskArgument {
    HostDirection direction;
    const ChipTensor *tensor;          // one of the two
    const TensorCreateInfo *created;
    ChipTensor as_added;               // what it looked like then
};

class HostLaunchSpec {
  public:
#if PTO_HOST_FAMILY_A5
    void set_core_num(int16_t n) { blocks_ = n; }
#else
    void set_block_num(int16_t n) { blocks_ = n; }
#endif
    int blocks() const { return blocks_; }

  private:
    int16_t blocks_ = 1;
};

class CoreTaskArgs {
  public:
    CoreTaskArgs() = default;
    CoreTaskArgs(const CoreTaskArgs &) = delete;
    CoreTaskArgs &operator=(const CoreTaskArgs &) = delete;

    // A temporary would be gone when the task is submitted.
    void add_input(const ChipTensor &tensor) { add(HostDirection::IN, tensor); }
    void add_inout(const ChipTensor &tensor) { add(HostDirection::INOUT, tensor); }
    void add_output(const ChipTensor &tensor) { add(HostDirection::OUT, tensor); }
    void add_output(const TensorCreateInfo &info) {
        arguments_.push_back({HostDirection::OUT, nullptr, &info, {}});
        check_tensor();
    }
    void add_input(ChipTensor &&) = delete;
    void add_inout(ChipTensor &&) = delete;
    void add_output(ChipTensor &&) = delete;
    void add_output(TensorCreateInfo &&) = delete;

    // How narrower numbers would be widened is not stated: they are converted before.
    template <typename T>
    void add_scalar(T value) {
        static_assert(std::is_same_v<T, float> || (std::is_integral_v<T> && sizeof(T) == 8), "a float or a 64-bit integer");
        uint64_t slot = 0;
        std::memcpy(&slot, &value, sizeof value);
        scalars_.push_back(slot);
        if (scalars_.size() > kMaxTaskScalars) rules::refuse(rules::scalars, std::to_string(scalars_.size()));
    }

    // The array is read when the task is submitted.
    void set_dependencies(const PTO2TaskId *ids, uint32_t n) {
        if (named_ != nullptr) rules::refuse(rules::dependencies_once, std::to_string(n) + " more");
        if (ids == nullptr || n == 0) rules::refuse(rules::dependencies_some, std::to_string(n));
        named_ = ids;
        dependencies_.assign(ids, ids + n);
    }

    HostLaunchSpec launch_spec;

    const std::vector<HostTaskArgument> &arguments() const { return arguments_; }
    const std::vector<uint64_t> &scalars() const { return scalars_; }
    const std::vector<PTO2TaskId> &dependencies() const { return dependencies_; }
    // Whether the array that set_dependencies was given says what it said then.
    bool dependencies_unchanged() const {
        return dependencies_.empty() || std::memcmp(named_, dependencies_.data(), dependencies_.size() * sizeof(PTO2TaskId)) == 0;
    }

  private:
    void add(HostDirection direction, const ChipTensor &tensor) {
        arguments_.push_back({direction, &tensor, nullptr, tensor});
        check_tensor();
    }
    void check_tensor() const {
        if (!scalars_.empty()) rules::refuse(rules::tensors_first, "tensor " + std::to_string(arguments_.size() - 1));
        if (arguments_.size() > kMaxTaskTensors) rules::refuse(rules::tensors, std::to_string(arguments_.size()));
    }

    std::vector<HostTaskArgument> arguments_;
    std::vector<uint64_t> scalars_;
    std::vector<PTO2TaskId> dependencies_;
    const PTO2TaskId *named_ = nullptr;
};

// The tensors that a task made the runtime allocate, in order, and the task.
class TaskOutputTensors {
  public:
    TaskOutputTensors(PTO2TaskId id, std::vector<ChipTensor> tensors) : id_(id), tensors_(std::move(tensors)) {}
    // Of a temporary it would be gone with it (rule get_ref_named).
    const ChipTensor &get_ref(uint32_t i) const & {
        if (i >= tensors_.size()) rules::refuse(rules::get_ref_count, std::to_string(i) + " of " + std::to_string(tensors_.size()));
        return tensors_[i];
    }
    const ChipTensor &get_ref(uint32_t i) const && = delete;
    PTO2TaskId task_id() const { return id_; }
    uint32_t size() const { return static_cast<uint32_t>(tensors_.size()); }

  private:
    PTO2TaskId id_;
    std::vector<ChipTensor> tensors_;
};

constexpr int32_t INVALID_KERNEL_ID = -1;

struct MixedKernels {
    int32_t aic = INVALID_KERNEL_ID;
    int32_t aiv0 = INVALID_KERNEL_ID;
    int32_t aiv1 = INVALID_KERNEL_ID;
};

// In host_runtime.cpp.
PTO_HOST_API TaskOutputTensors rt_submit_task(const MixedKernels &kernels, const CoreTaskArgs &args);
PTO_HOST_API TaskOutputTensors rt_submit_aic_task(int32_t func_id, const CoreTaskArgs &args);
PTO_HOST_API TaskOutputTensors rt_submit_aiv_task(int32_t func_id, const CoreTaskArgs &args);
// A task without a kernel, which only waits.
PTO_HOST_API TaskOutputTensors rt_submit_dummy_task(const CoreTaskArgs &args);
PTO_HOST_API void host_scope_begin();
PTO_HOST_API void host_scope_end();
PTO_HOST_API const void *host_element(const ChipTensor &tensor, uint32_t ndims, const uint32_t *index, uint32_t bytes, bool builds_graph);

// Tensors that no task has to write first: who is given one waits for nobody else.
template <typename... I>
TaskOutputTensors alloc_tensors(const I &...infos) {
    CoreTaskArgs args;
    (args.add_output(static_cast<const TensorCreateInfo &>(infos)), ...);
    return rt_submit_dummy_task(args);
}

class HostScope {
  public:
    HostScope() { host_scope_begin(); }
    ~HostScope() noexcept(false) { host_scope_end(); }
    HostScope(const HostScope &) = delete;
    explicit operator bool() const { return true; }
};

#define PTO2_SCOPE() if (HostScope host_scope{}; host_scope)

// An element, once the tasks that write it have run; host_build_graph runs none before all are there.
template <typename T>
T get_tensor_data(const ChipTensor &tensor, uint32_t ndims, const uint32_t *index) {
    T value;
    std::memcpy(&value, host_element(tensor, ndims, index, sizeof value, PTO_HOST_BUILD_GRAPH != 0), sizeof value);
    return value;
}
