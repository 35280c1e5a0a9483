// The host's stand-in for the device runtime: it keeps what an orchestration submits, and runs it in an order of its own choice.
//
// Edges are those that the runtime infers and those that a task names. IN and INOUT look for earlier writers of overlapping views; OUT
// waits only for the task that allocates the tensor, and nothing waits for readers. Any order that these edges allow may be taken, so what
// lacks an edge gives wrong numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "pto_orchestration_api.h"

enum class Order {
    PROGRAM,   // the task submitted first
    REVERSED,  // the task submitted last
    SHUFFLED,
};

struct LoadedKernel {
    bool cube;
    void (*entry)(int64_t *args);
    void (*begin)(const HostTask *task);
    void (*end)();
};

// A piece of memory: a tensor of the user, or one that the runtime allocated.
struct Buffer {
    std::unique_ptr<unsigned char[]> bytes;
    ChipBuffer place;
    int tensor;         // which of the user's, -1 for the runtime's own
    int maker;          // the task that allocates it, -1 for the user's
    bool closed;        // its scope has ended
    int waiting;        // tasks that use it and have not run
};

enum class EdgeKind { MADE, FOUND, NAMED };

struct Edge {
    int from;
    EdgeKind kind;
};

struct TaskArgument {
    HostDirection direction;
    ChipTensor tensor;
    int buffer;
};

struct Task {
    std::vector<int> kernels;  // func_ids, none of a task that only waits or allocates
    std::vector<TaskArgument> arguments;
    std::vector<uint64_t> scalars;
    int blocks;
    std::vector<Edge> edges;
    bool done;
};

// Who has written a view. `current`: no later INOUT covers it.
struct Written {
    ChipTensor tensor;
    int task;
    bool current;
};

class HostRuntime {
  public:
    HostRuntime(std::vector<LoadedKernel> kernels, Order order, uint32_t seed);

    // Gives the runtime a tensor of the user, contiguous, and copies its elements.
    ChipTensor bind(const void *data, DataType dtype, uint32_t ndims, const uint32_t *shape);
    const unsigned char *data(int tensor) const;

    // Without kernels: a task that only waits, or allocates.
    TaskOutputTensors submit(const MixedKernels *kernels, const CoreTaskArgs &args);
    void open_scope();
    void close_scope();
    const void *element(const ChipTensor &tensor, uint32_t ndims, const uint32_t *index, uint32_t bytes, bool builds_graph);

    // Runs what has not run.
    void finish();
    void write_graph(std::ostream &out) const;

  private:
    int allocate(uint64_t size, int tensor, int maker);
    int buffer_of(const ChipTensor &tensor) const;
    void infer(Task &task);
    void run_all(std::vector<bool> wanted);
    int choose(const std::vector<int> &ready);
    void run(int id);
    void run_block(const Task &task, const LoadedKernel &kernel, int block);
    void retire(int buffer);

    std::vector<LoadedKernel> kernels_;
    Order order_;
    std::mt19937 random_;
    std::vector<Buffer> buffers_;
    std::vector<Task> tasks_;
    std::vector<Written> written_;
    std::vector<std::vector<int>> scopes_;   // the buffers of each open one
    uint64_t open_bytes_ = 0, most_bytes_ = 0;
};

// The one that the submission interface speaks to.
extern HostRuntime *host_runtime;
