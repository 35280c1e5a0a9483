#include "host_runtime.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "regions.h"

constexpr unsigned char kPoison = 0xff;  // NaN in every float dtype
constexpr uint64_t kGuardBytes = 64;

HostRuntime *host_runtime = nullptr;

static std::string where(size_t task, size_t argument) {
    return "task " + std::to_string(task) + ", tensor " + std::to_string(argument) + ": ";
}

static bool same(const ChipTensor &one, const ChipTensor &other) {
    return one.buffer.addr == other.buffer.addr && one.start_offset == other.start_offset && one.ndims == other.ndims &&
           one.dtype == other.dtype && std::equal(one.shapes, one.shapes + one.ndims, other.shapes) &&
           std::equal(one.strides, one.strides + one.ndims, other.strides);
}

static ChipTensor whole(ChipBuffer place, DataType dtype, uint32_t ndims, const uint32_t *shape) {
    ChipTensor tensor{place, 0, ndims, {}, {}, dtype};
    uint64_t stride = 1;
    for (uint32_t dim = ndims; dim-- > 0;) {
        tensor.shapes[dim] = shape[dim];
        tensor.strides[dim] = static_cast<uint32_t>(stride);
        stride *= shape[dim];
    }
    return tensor;
}

HostRuntime::HostRuntime(std::vector<LoadedKernel> kernels, Order order, uint32_t seed)
    : kernels_(std::move(kernels)), order_(order), random_(seed), scopes_(1) {
    if (kernels_.size() > rules::k_callables) rules::refuse(rules::callables, std::to_string(kernels_.size()));
}

int HostRuntime::allocate(uint64_t size, int tensor, int maker) {
    Buffer buffer{std::make_unique<unsigned char[]>(size + 2 * kGuardBytes), {0, size}, tensor, maker, false, 0};
    std::memset(buffer.bytes.get(), kPoison, size + 2 * kGuardBytes);
    const uint64_t start = reinterpret_cast<uint64_t>(buffer.bytes.get());
    buffer.place.addr = (start + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
    buffers_.push_back(std::move(buffer));
    return static_cast<int>(buffers_.size()) - 1;
}

ChipTensor HostRuntime::bind(const void *data, DataType dtype, uint32_t ndims, const uint32_t *shape) {
    const ChipTensor shaped = whole({0, 0}, dtype, ndims, shape);
    const uint64_t size = shaped.count() * bytes_of(dtype);
    const Buffer &buffer = buffers_[static_cast<size_t>(allocate(size, static_cast<int>(buffers_.size()), -1))];
    std::memcpy(reinterpret_cast<void *>(buffer.place.addr), data, size);
    return whole(buffer.place, dtype, ndims, shape);
}

const unsigned char *HostRuntime::data(int tensor) const {
    return reinterpret_cast<const unsigned char *>(buffers_.at(static_cast<size_t>(tensor)).place.addr);
}

int HostRuntime::buffer_of(const ChipTensor &tensor) const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
        if (buffers_[i].place.addr != tensor.buffer.addr || buffers_[i].place.size != tensor.buffer.size) continue;
        if (buffers_[i].closed) rules::refuse(rules::scope_end, "tensor " + std::to_string(i));
        uint64_t last = tensor.start_offset;
        for (uint32_t dim = 0; dim < tensor.ndims; ++dim) {
            if (tensor.shapes[dim] != 0) last += static_cast<uint64_t>(tensor.shapes[dim] - 1) * tensor.strides[dim];
        }
        if (tensor.count() != 0 && (last + 1) * bytes_of(tensor.dtype) > tensor.buffer.size) {
            throw std::out_of_range("a view reaches past its buffer");
        }
        return static_cast<int>(i);
    }
    throw std::logic_error("a descriptor of no known buffer");
}

TaskOutputTensors HostRuntime::submit(const MixedKernels *kernels, const CoreTaskArgs &args) {
    const size_t id = tasks_.size();
    Task task{{}, {}, args.scalars(), args.launch_spec.blocks(), {}, false};
    const MixedKernels none;
    const int32_t func_ids[] = {(kernels ? *kernels : none).aic, (kernels ? *kernels : none).aiv0, (kernels ? *kernels : none).aiv1};
    for (int place = 0; place < 3; ++place) {
        const int32_t func_id = func_ids[place];
        if (func_id == INVALID_KERNEL_ID) continue;
        if (func_id < 0 || static_cast<size_t>(func_id) >= kernels_.size()) {
            throw std::out_of_range("task " + std::to_string(id) + ": no kernel " + std::to_string(func_id));
        }
        if (kernels_[static_cast<size_t>(func_id)].cube != (place == 0)) {
            rules::refuse(rules::own_core, "task " + std::to_string(id) + ", kernel " + std::to_string(func_id));
        }
        task.kernels.push_back(func_id);
    }
    if (kernels != nullptr && task.kernels.empty()) throw std::logic_error("task " + std::to_string(id) + " has no kernel");
    if (task.blocks < 1) throw std::logic_error("task " + std::to_string(id) + " is launched with no block");

    std::vector<ChipTensor> created;
    for (const HostTaskArgument &argument : args.arguments()) {
        const std::string at = where(id, task.arguments.size());
        if (argument.created != nullptr) {
            const TensorCreateInfo &info = *argument.created;
            if (!info.alive()) rules::refuse(rules::arguments_live, at + "its TensorCreateInfo is gone");
            const uint64_t size = whole({0, 0}, info.dtype(), info.ndims(), info.shape()).count() * bytes_of(info.dtype());
            if (size == 0) rules::refuse(rules::not_empty, at + "it has none");
            const int buffer = allocate(size, -1, static_cast<int>(id));
            scopes_.back().push_back(buffer);
            open_bytes_ += size;
            most_bytes_ = std::max(most_bytes_, open_bytes_);
            created.push_back(whole(buffers_[static_cast<size_t>(buffer)].place, info.dtype(), info.ndims(), info.shape()));
            task.arguments.push_back({argument.direction, created.back(), buffer});
        } else {
            if (!argument.tensor->life.alive()) rules::refuse(rules::arguments_live, at + "its descriptor is gone");
            if (!same(*argument.tensor, argument.as_added)) rules::refuse(rules::arguments_live, at + "its descriptor has changed");
            try {
                task.arguments.push_back({argument.direction, *argument.tensor, buffer_of(*argument.tensor)});
            } catch (const std::exception &fault) {
                throw std::logic_error(at + fault.what());
            }
        }
    }
    if (!args.dependencies_unchanged()) rules::refuse(rules::dependencies_live, "task " + std::to_string(id));
    for (const PTO2TaskId &named : args.dependencies()) {
        if (named.raw >= id) rules::refuse(rules::dependencies_valid, "task " + std::to_string(id));
        task.edges.push_back({static_cast<int>(named.raw), EdgeKind::NAMED});
    }
    infer(task);
    for (const TaskArgument &argument : task.arguments) ++buffers_[static_cast<size_t>(argument.buffer)].waiting;
    tasks_.push_back(std::move(task));
    return TaskOutputTensors({id}, std::move(created));
}

// Adds the edges that the runtime infers: from who allocates a tensor; for IN and INOUT, from who has written where views overlap. Then
// what the task writes is known, and an INOUT takes the place of what it covers.
void HostRuntime::infer(Task &task) {
    const int id = static_cast<int>(tasks_.size());
    std::vector<bool> made(tasks_.size(), false), found(tasks_.size(), false);
    for (const TaskArgument &mine : task.arguments) {
        const int maker = buffers_[static_cast<size_t>(mine.buffer)].maker;
        if (maker >= 0 && maker != id) made[static_cast<size_t>(maker)] = true;
        if (mine.direction == HostDirection::OUT) continue;
        for (Written &entry : written_) {
            if (!entry.current || !overlap(mine.tensor, entry.tensor)) continue;
            found[static_cast<size_t>(entry.task)] = true;
            if (mine.direction == HostDirection::INOUT && covers(mine.tensor, entry.tensor)) entry.current = false;
        }
    }
    for (size_t earlier = 0; earlier < tasks_.size(); ++earlier) {
        if (made[earlier]) task.edges.push_back({static_cast<int>(earlier), EdgeKind::MADE});
        if (found[earlier]) task.edges.push_back({static_cast<int>(earlier), EdgeKind::FOUND});
    }
    for (const TaskArgument &mine : task.arguments) {
        if (mine.direction != HostDirection::IN) written_.push_back({mine.tensor, id, true});
    }
}

void HostRuntime::open_scope() {
    scopes_.emplace_back();  // the first is around all tasks
    if (scopes_.size() > rules::k_scopes) rules::refuse(rules::scopes, std::to_string(scopes_.size()));
}

void HostRuntime::close_scope() {
    for (int id : scopes_.back()) {
        Buffer &buffer = buffers_[static_cast<size_t>(id)];
        buffer.closed = true;
        open_bytes_ -= buffer.place.size;
        retire(id);
    }
    scopes_.pop_back();
}

// Poisons a buffer that nothing may use any more.
void HostRuntime::retire(int id) {
    Buffer &buffer = buffers_[static_cast<size_t>(id)];
    if (buffer.closed && buffer.waiting == 0) std::memset(reinterpret_cast<void *>(buffer.place.addr), kPoison, buffer.place.size);
}

const void *HostRuntime::element(const ChipTensor &tensor, uint32_t ndims, const uint32_t *index, uint32_t bytes, bool builds_graph) {
    if (ndims != tensor.ndims || bytes != bytes_of(tensor.dtype)) throw std::invalid_argument("get_tensor_data: another rank or dtype");
    const uint32_t ones[kMaxTensorDims] = {1, 1, 1, 1, 1};
    const ChipTensor part = tensor.view(ones, index);
    const Buffer &buffer = buffers_[static_cast<size_t>(buffer_of(part))];
    if (builds_graph && buffer.tensor < 0) rules::refuse(rules::given_elements, "an element of a tensor of the runtime");
    std::vector<bool> wanted(tasks_.size(), false);
    for (size_t id = 0; id < tasks_.size(); ++id) {
        for (const TaskArgument &argument : tasks_[id].arguments) {
            if (argument.direction != HostDirection::IN && overlap(argument.tensor, part)) wanted[id] = true;
        }
        if (builds_graph && wanted[id]) rules::refuse(rules::given_elements, "an element that task " + std::to_string(id) + " writes");
    }
    for (size_t id = tasks_.size(); id-- > 0;) {
        if (!wanted[id]) continue;
        for (const Edge &edge : tasks_[id].edges) wanted[static_cast<size_t>(edge.from)] = true;
    }
    run_all(std::move(wanted));
    return reinterpret_cast<const unsigned char *>(part.buffer.addr) + part.start_offset * bytes;
}

void HostRuntime::finish() {
    if (scopes_.size() != 1) throw std::logic_error("a scope is still open at the end");
    run_all(std::vector<bool>(tasks_.size(), true));
}

void HostRuntime::run_all(std::vector<bool> wanted) {
    std::vector<int> waits(tasks_.size(), 0), ready;
    std::vector<std::vector<int>> next(tasks_.size());
    for (size_t id = 0; id < tasks_.size(); ++id) {
        if (tasks_[id].done || !wanted[id]) continue;
        for (const Edge &edge : tasks_[id].edges) {
            if (tasks_[static_cast<size_t>(edge.from)].done) continue;
            next[static_cast<size_t>(edge.from)].push_back(static_cast<int>(id));
            ++waits[id];
        }
        if (waits[id] == 0) ready.push_back(static_cast<int>(id));
    }
    while (!ready.empty()) {
        const int at = choose(ready), id = ready[static_cast<size_t>(at)];
        ready.erase(ready.begin() + at);
        run(id);
        for (int after : next[static_cast<size_t>(id)]) {
            if (--waits[static_cast<size_t>(after)] == 0) ready.push_back(after);
        }
    }
}

int HostRuntime::choose(const std::vector<int> &ready) {
    switch (order_) {
        case Order::PROGRAM: return static_cast<int>(std::min_element(ready.begin(), ready.end()) - ready.begin());
        case Order::REVERSED: return static_cast<int>(std::max_element(ready.begin(), ready.end()) - ready.begin());
        case Order::SHUFFLED: return static_cast<int>(random_() % ready.size());
    }
    return 0;
}

void HostRuntime::run(int id) {
    Task &task = tasks_[static_cast<size_t>(id)];
    std::vector<int> blocks(static_cast<size_t>(task.blocks));
    for (int block = 0; block < task.blocks; ++block) blocks[static_cast<size_t>(block)] = block;
    if (order_ == Order::REVERSED) std::reverse(blocks.begin(), blocks.end());
    if (order_ == Order::SHUFFLED) std::shuffle(blocks.begin(), blocks.end(), random_);
    for (int func_id : task.kernels) {
        for (int block : blocks) {
            try {
                run_block(task, kernels_[static_cast<size_t>(func_id)], block);
            } catch (const std::exception &fault) {
                throw std::runtime_error("task " + std::to_string(id) + ", kernel " + std::to_string(func_id) + ", block " +
                                         std::to_string(block) + ": " + fault.what());
            }
        }
    }
    task.done = true;
    for (const TaskArgument &argument : task.arguments) {
        --buffers_[static_cast<size_t>(argument.buffer)].waiting;
        retire(argument.buffer);
    }
}

void HostRuntime::run_block(const Task &task, const LoadedKernel &kernel, int block) {
    const ChipTensor *tensors[kMaxTaskTensors] = {};
    bool writable[kMaxTaskTensors] = {};
    int64_t slots[kTaskSlots] = {};
    const size_t n = task.arguments.size();
    for (size_t i = 0; i < n; ++i) {
        tensors[i] = &task.arguments[i].tensor;
        writable[i] = task.arguments[i].direction != HostDirection::IN;
        slots[i] = static_cast<int64_t>(reinterpret_cast<uint64_t>(tensors[i]));
    }
    for (size_t i = 0; i < task.scalars.size(); ++i) slots[n + i] = static_cast<int64_t>(task.scalars[i]);
    slots[kBlockIdxSlot] = block;
    slots[kBlockNumSlot] = task.blocks;
    const HostTask told{kernel.cube, static_cast<int>(n), tensors, writable};
    kernel.begin(&told);
    kernel.entry(slots);
    kernel.end();
}

static void write_list(std::ostream &out, size_t n, const std::function<void(size_t)> &item) {
    out << "[";
    for (size_t i = 0; i < n; ++i) {
        if (i != 0) out << ", ";
        item(i);
    }
    out << "]";
}

void HostRuntime::write_graph(std::ostream &out) const {
    static const char *const kinds[] = {"made", "found", "named"};
    out << "{\"most_bytes\": " << most_bytes_ << ",\n \"buffers\": ";
    write_list(out, buffers_.size(), [&](size_t i) {
        out << "{\"tensor\": " << buffers_[i].tensor << ", \"bytes\": " << buffers_[i].place.size << "}";
    });
    out << ",\n \"tasks\": ";
    write_list(out, tasks_.size(), [&](size_t i) {
        const Task &task = tasks_[i];
        out << "\n  {\"kernels\": ";
        write_list(out, task.kernels.size(), [&](size_t j) { out << task.kernels[j]; });
        out << ", \"blocks\": " << task.blocks << ", \"scalars\": ";
        write_list(out, task.scalars.size(), [&](size_t j) { out << task.scalars[j]; });
        out << ", \"edges\": ";
        write_list(out, task.edges.size(), [&](size_t j) {
            out << "[" << task.edges[j].from << ", \"" << kinds[static_cast<int>(task.edges[j].kind)] << "\"]";
        });
        out << ", \"arguments\": ";
        write_list(out, task.arguments.size(), [&](size_t j) {
            const TaskArgument &argument = task.arguments[j];
            const ChipTensor &t = argument.tensor;
            out << "{\"direction\": " << static_cast<int>(argument.direction) << ", \"buffer\": " << argument.buffer
                << ", \"bytes\": " << bytes_of(t.dtype) << ", \"offset\": " << t.start_offset << ", \"shape\": ";
            write_list(out, t.ndims, [&](size_t dim) { out << t.shapes[dim]; });
            out << ", \"strides\": ";
            write_list(out, t.ndims, [&](size_t dim) { out << t.strides[dim]; });
            out << "}";
        });
        out << "}";
    });
    out << "}\n";
}

TaskOutputTensors rt_submit_task(const MixedKernels &kernels, const CoreTaskArgs &args) { return host_runtime->submit(&kernels, args); }

TaskOutputTensors rt_submit_aic_task(int32_t func_id, const CoreTaskArgs &args) {
    const MixedKernels kernels{func_id, INVALID_KERNEL_ID, INVALID_KERNEL_ID};
    return host_runtime->submit(&kernels, args);
}

TaskOutputTensors rt_submit_aiv_task(int32_t func_id, const CoreTaskArgs &args) {
    const MixedKernels kernels{INVALID_KERNEL_ID, func_id, INVALID_KERNEL_ID};
    return host_runtime->submit(&kernels, args);
}

TaskOutputTensors rt_submit_dummy_task(const CoreTaskArgs &args) { return host_runtime->submit(nullptr, args); }

void host_scope_begin() { host_runtime->open_scope(); }

void host_scope_end() { host_runtime->close_scope(); }

const void *host_element(const ChipTensor &tensor, uint32_t ndims, const uint32_t *index, uint32_t bytes, bool builds_graph) {
    return host_runtime->element(tensor, ndims, index, bytes, builds_graph);
}
