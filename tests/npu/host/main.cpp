// Runs a package that is compiled to shared objects. usage: host SPEC
//
// SPEC is lines of words: `kernel aic|aiv PATH ENTRY` in the order of func_id, `orchestration PATH FUNCTION`, `tensor DTYPE EXTENT...` in
// the order of the arguments, whose elements lie one tensor after the other in the file of `data PATH`, `scalar SLOT`,
// and for each run `run ORDER SEED OUT GRAPH`: the tensors as they are then go to OUT, the task graph as JSON to GRAPH.
#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

#include "host_runtime.h"

struct UserTensor {
    DataType dtype;
    std::vector<uint32_t> shape;
    uint64_t bytes;
};

struct Run {
    Order order;
    uint32_t seed;
    std::string out, graph;
};

struct Spec {
    std::vector<LoadedKernel> kernels;
    PTO2OrchestrationConfig (*config)(const ChipTaskArgs &) = nullptr;
    void (*entry)(const ChipTaskArgs &) = nullptr;
    std::vector<UserTensor> tensors;
    std::vector<uint64_t> scalars;
    std::string data;
    std::vector<Run> runs;
};

static const std::map<std::string, DataType> kDtypes = {
    {"FLOAT32", DataType::FLOAT32}, {"FLOAT16", DataType::FLOAT16}, {"BFLOAT16", DataType::BFLOAT16}, {"INT8", DataType::INT8},
    {"INT16", DataType::INT16},     {"INT32", DataType::INT32},     {"INT64", DataType::INT64},       {"UINT8", DataType::UINT8},
    {"UINT16", DataType::UINT16},   {"UINT32", DataType::UINT32},   {"UINT64", DataType::UINT64},     {"BOOL", DataType::BOOL},
};
static const std::map<std::string, Order> kOrders = {
    {"program", Order::PROGRAM}, {"reversed", Order::REVERSED}, {"shuffled", Order::SHUFFLED}};

template <typename F>
static F symbol(void *library, const std::string &name) {
    void *found = dlsym(library, name.c_str());
    if (found == nullptr) throw std::runtime_error("no symbol " + name + ": it must be extern \"C\" with default visibility");
    return reinterpret_cast<F>(found);
}

static void *library(const std::string &path) {
    void *opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) throw std::runtime_error(dlerror());
    return opened;
}

static Spec read_spec(const char *path) {
    Spec spec;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string kind, word;
        words >> kind >> word;
        if (kind == "kernel") {
            std::string shared, entry;
            words >> shared >> entry;
            void *opened = library(shared);
            spec.kernels.push_back({word == "aic", symbol<void (*)(int64_t *)>(opened, entry),
                                    symbol<void (*)(const HostTask *)>(opened, "pto_emulator_begin"),
                                    symbol<void (*)()>(opened, "pto_emulator_end")});
        } else if (kind == "orchestration") {
            std::string function;
            words >> function;
            void *opened = library(word);
            spec.config = symbol<decltype(spec.config)>(opened, "aicpu_orchestration_config");
            spec.entry = symbol<decltype(spec.entry)>(opened, function);
        } else if (kind == "tensor") {
            UserTensor tensor{kDtypes.at(word), {}, bytes_of(kDtypes.at(word))};
            for (uint32_t extent; words >> extent;) {
                tensor.shape.push_back(extent);
                tensor.bytes *= extent;
            }
            spec.tensors.push_back(tensor);
        } else if (kind == "scalar") {
            spec.scalars.push_back(std::stoull(word));
        } else if (kind == "data") {
            spec.data = word;
        } else if (kind == "run") {
            Run run{kOrders.at(word), 0, "", ""};
            words >> run.seed >> run.out >> run.graph;
            spec.runs.push_back(run);
        } else {
            throw std::runtime_error("what is `" + kind + "`?");
        }
    }
    return spec;
}

static void execute(const Spec &spec, const Run &run, const std::vector<char> &data) {
    HostRuntime runtime(spec.kernels, run.order, run.seed);
    host_runtime = &runtime;
    std::vector<ChipTensor> tensors;
    uint64_t at = 0;
    for (const UserTensor &tensor : spec.tensors) {
        tensors.push_back(runtime.bind(data.data() + at, tensor.dtype, static_cast<uint32_t>(tensor.shape.size()), tensor.shape.data()));
        at += tensor.bytes;
    }
    const ChipTaskArgs args(tensors.data(), static_cast<int>(tensors.size()), spec.scalars.data(), static_cast<int>(spec.scalars.size()));
    const int expected = spec.config(args).expected_arg_count, given = args.tensor_count() + args.scalar_count();
    if (expected != given) {
        throw std::runtime_error("expected_arg_count is " + std::to_string(expected) + ", given are " + std::to_string(given));
    }
    spec.entry(args);
    runtime.finish();

    std::ofstream out(run.out, std::ios::binary);
    for (size_t i = 0; i < spec.tensors.size(); ++i) {
        out.write(reinterpret_cast<const char *>(runtime.data(static_cast<int>(i))), static_cast<std::streamsize>(spec.tensors[i].bytes));
    }
    std::ofstream graph(run.graph);
    runtime.write_graph(graph);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        std::cerr << "usage: host SPEC\n";
        return 2;
    }
    try {
        const Spec spec = read_spec(argv[1]);
        std::ifstream file(spec.data, std::ios::binary);
        const std::vector<char> data{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        for (const Run &run : spec.runs) execute(spec, run, data);
    } catch (const std::exception &fault) {
        std::cerr << fault.what() << "\n";
        return 1;
    }
    return 0;
}
