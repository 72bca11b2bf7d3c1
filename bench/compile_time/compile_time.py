#!/usr/bin/env python3
"""The compile-time cost of cleave: its headers, a program, one more redistribution.

usage: compile_time.py [COMPILER]   (default g++; at -O0 unless it says -O2; the library is header-only, unless a
                                           name contains `compiled`: CLEAVE_COMPILED=1)

compile.include_vs_std             a file that includes <cleave/cleave.hpp>, relative to one that
                                   includes the standard headers below; ranks are threads
compile.include_compiled_vs_std    the same, compiled
compile.include_mb                 the compiler's peak resident set on that file
compile.graph_1000_s               tracing and expanding a program of 1,000 nodes in a static_assert
compile.program_mpi_s              tests/consumer/project/main.cpp: `run`, MPI, a redistribution
compile.program_mpi_compiled_vs_header_only
compile.library_mpi_s              <cleave/compiled.hpp> with MPI: the part compiled once
compile.heat_o2.mpi_s              heat_mpi.cpp, a program in plain MPI, at -O2
compile.heat_o2.header_only_vs_mpi heat.cpp, the same program with cleave, at -O2, over it
compile.heat_o2.compiled_vs_mpi    the same, compiled
compile.pca_o2.header_only_vs_mpi  pca.cpp, at -O2, over heat_mpi.cpp
compile.pca_o2.compiled_vs_mpi     the same, compiled
compile.cuda_program_s             a GPU program, by nvcc for one architecture
compile.cuda_program_compiled_vs_header_only
compile.cuda_library_s             <cleave/compiled_cuda.hpp>, likewise
compile.redistribute_ms            each further redistribution between two-axis placements
compile.dtensor_call_s             each further operation called on DTensors, including its kernel
compile.tracked_call_s             the same on tracked DTensors, including record and gradient
compile.plan_s                     parallelize_module of a 12-layer transformer, 8 paths, less the
                                   same model on one device
compile.plan_forward_s             its call, less the call of the model on one device

Times are processor time, user and system, which other load disturbs less than wall time. All
variants are interleaved; every number is the median over the rounds. Ratios are taken within a
round, because machines differ and drift by more than the effects measured here. Without MPI, or
without nvcc and the CUDA toolkit, their lines are omitted, with a message on stderr.
"""

import itertools
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS, FEWER_ROUNDS = 5, 3  # fewer where a file takes more than ten seconds
FEW, MANY = 5, 205
COMPILED = ["-DCLEAVE_COMPILED=1"]

# The headers that an include is compared with. Frozen, so that figures of different versions are
# comparable.
STANDARD = """algorithm array atomic bit complex condition_variable concepts exception fstream limits
memory mutex new numeric span string thread tuple utility vector""".split()

INCLUDE_STANDARD = "".join(f"#include <{header}>\n" for header in STANDARD)
INCLUDE_CLEAVE = "#include <cleave/cleave.hpp>\n"
HEAT, HEAT_MPI, PCA = ((ROOT / "bench/compile_time" / name).read_text()
                       for name in ("heat.cpp", "heat_mpi.cpp", "pca.cpp"))
PROGRAM = (ROOT / "tests/consumer/project/main.cpp").read_text()
LIBRARY = "#include <cleave/compiled.hpp>\n"

CUDA_PROGRAM = """#include <cleave/cuda.hpp>
using namespace cleave;
using namespace cleave::axes;
int main(int argc, char** argv) {
  return run<Host, Cuda>(argc, argv, [](World& world, auto device) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, device);
    const Tensor<float, 2> table({4, 6});
    const auto x = distribute_tensor(table, mesh, Shard<0>{}, Replicate{});
    return int(x.redistribute(Replicate{}, Shard<1>{}).full_tensor().size());
  });
}
"""
CUDA_LIBRARY = "#include <cleave/compiled_cuda.hpp>\n"

ALIASES = """using namespace cleave;
template <class... P>
using X = DTensor<float, 3, DeviceMesh<Host, axes::dp, axes::tp>, Placements<P...>>;
"""

GRAPH = """#include <array>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/trace_function.hpp>
using namespace cleave;
using namespace cleave::spmd;
constexpr int layers = %d;
struct Layers {
  constexpr auto operator()(const auto& x, const auto& up, const auto& down) const {
    auto y = resolve(x);
    for (int i = 0; i < layers; ++i) y = add(y, resolve(matmul(tanh(matmul(y, up)), down)));
    return y;
  }
};
constexpr auto graph = frozen([] {
  return trace(Layers{}, arg<float>("x", {8, 4}), arg<float>("up", {4, 16}),
               arg<float>("down", {16, 4}));
});
constexpr std::array schemas{schema(Replicate{}), schema(Shard<1>{}), schema(Shard<0>{})};
static_assert(communications(expand(graph, schemas)) == layers);
"""


TRANSFORMER = """#include <vector>
#include <cleave/parallel.hpp>
using namespace cleave;
using axes::dp;
using axes::tp;
template <class Tokens = nn::Embedding<>, class Blocks = std::vector<nn::TransformerBlock<>>,
          class Head = nn::Linear<>>
struct Gpt {
  Tokens tokens;
  Blocks blocks;
  Head head;
  static constexpr nn::names members{"tokens", "blocks", "head"};
  auto operator()(const auto& ids) const {
    auto y = tokens(ids);
    for (const auto& block : blocks) y = block(y);
    return head(y);
  }
};
const Gpt<> gpt{nn::embedding(64, 32), std::vector(12, nn::transformer_block(32, 4)),
                nn::linear(32, 64)};
"""
ON_ONE_DEVICE = TRANSFORMER + """
auto made(RandomState& state) { return nn::make(gpt, state); }
"""
BY_A_PLAN = TRANSFORMER + """
auto made(const DeviceMesh<Host, dp, tp>& mesh) {
  return parallelize_module(
      gpt, mesh, tp{}, on("tokens"_path, RowwiseParallel{}),
      on("blocks.*.attention.query"_path, ColwiseParallel{}),
      on("blocks.*.attention.key"_path, ColwiseParallel{}),
      on("blocks.*.attention.value"_path, ColwiseParallel{}),
      on("blocks.*.attention.out"_path, RowwiseParallel{}),
      on("blocks.*.mlp.up"_path, ColwiseParallel{}),
      on("blocks.*.mlp.down"_path, RowwiseParallel{}), on("head"_path, ColwiseParallel{}));
}
"""
CALL_ON_ONE_DEVICE = ON_ONE_DEVICE + """
auto call(RandomState& state, const Tensor<index_t, 2>& ids) { return made(state)(ids); }
"""
CALL_BY_A_PLAN = BY_A_PLAN + """
using Ids = DTensor<index_t, 2, DeviceMesh<Host, dp, tp>, Placements<Shard<0>, Replicate>>;
auto call(const Ids& ids) { return made(ids.mesh())(ids); }
"""


def redistributions(count):
    """A file with `count` redistributions, each between different placements."""
    placements = ["Replicate", "Shard<0>", "Shard<1>", "Shard<2>"]
    layouts = list(itertools.product(placements, repeat=2))
    pairs = [(a, b) for a in layouts for b in layouts if a != b]
    step = 97  # coprime to the number of pairs: all sources and targets come early
    lines = []
    for i in range(count):
        source, target = pairs[i * step % len(pairs)]
        lines.append("auto f%d(const X<%s>& x) { return x.redistribute(%s); }"
                     % (i, ", ".join(source), ", ".join(p + "{}" for p in target)))
    return INCLUDE_CLEAVE + ALIASES + "\n".join(lines) + "\n"


OPERATIONS = ["add(x, y)", "exp(x)", "sum(x, dim<1>{})", "mul(x, y)", "sub(x, y)", "div(x, y)",
              "maximum(x, y)", "neg(x)", "relu(x)", "log(x)", "sqrt(x)", "tanh(x)", "sigmoid(x)",
              "abs(x)", "square(x)", "mean(x)", "max(x, dim<0>{})", "transpose(x)"]
FEW_CALLS, MANY_CALLS = 3, len(OPERATIONS)  # the few compile what all calls share


def calls(count, tracked):
    """A file with calls of `count` different operations."""
    header = INCLUDE_CLEAVE + ("#include <cleave/grad.hpp>\n" if tracked else "")
    wrap = "Tracked<%s>" if tracked else "%s"
    alias = "using Operand = %s;\n" % (wrap % "X<Shard<0>, Replicate>")
    lines = ["auto f%d(const Operand& x, [[maybe_unused]] const Operand& y) { return %s; }" % call
             for call in enumerate(OPERATIONS[:count])]
    return header + ALIASES + alias + "\n".join(lines) + "\n"


def measure(command, text):
    """(seconds, MB) of one run of a compiler on a file that contains `text`."""
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "unit.cpp"
        source.write_text(text)
        words = [*command, f"-I{ROOT}/include", "-c", str(source), "-o", scratch + "/unit.o"]
        process = subprocess.Popen(words)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"failed: {' '.join(words)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def rounds(variants, count):
    """The seconds, and the megabytes, of every variant in every round: {name: [..]}."""
    seconds, megabytes = ({name: [] for name in variants} for _ in range(2))
    for _ in range(count):
        for name, (command, text) in variants.items():
            s, mb = measure(command, text)
            seconds[name].append(s)
            megabytes[name].append(mb)
    return seconds, megabytes


def report(name, values, unit="", digits=2):
    print(f"compile.{name} {statistics.median(values):.{digits}f} {unit}".rstrip(), flush=True)


def ratio(of, to):
    return [a / b for a, b in zip(of, to)]


def mpi_flags():
    """The compiler flags for MPI; None if it is not installed."""
    try:
        done = subprocess.run(["mpicxx", "--showme:compile"], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None
    if not pathlib.Path("/usr/include/boost/mpi.hpp").exists():
        return None
    return [*done.stdout.split(), "-DCLEAVE_HAS_MPI=1"]


def report_whole_programs(base):
    """Programs as users compile them, relative to one in plain MPI."""
    seconds, _ = rounds({
        "mpi": (base, HEAT_MPI),
        "heat header_only": (base, HEAT),
        "heat compiled": (base + COMPILED, HEAT),
        "pca header_only": (base, PCA),
        "pca compiled": (base + COMPILED, PCA),
    }, FEWER_ROUNDS)
    report("heat_o2.mpi_s", seconds["mpi"], "s")
    for program in ("heat", "pca"):
        for mode in ("header_only", "compiled"):
            report(f"{program}_o2.{mode}_vs_mpi", ratio(seconds[f"{program} {mode}"], seconds["mpi"]))


def main(compiler="g++"):
    base = [compiler, "-std=c++20", "-O0"]
    variants = {
        "std": (base, INCLUDE_STANDARD),
        "include": (base, INCLUDE_CLEAVE),
        "include compiled": (base + COMPILED, INCLUDE_CLEAVE),
        "few": (base, redistributions(FEW)),
        "many": (base, redistributions(MANY)),
        "few calls": (base, calls(FEW_CALLS, False)),
        "many calls": (base, calls(MANY_CALLS, False)),
        "few tracked": (base, calls(FEW_CALLS, True)),
        "many tracked": (base, calls(MANY_CALLS, True)),
        "graph": (base, GRAPH % 1),
        "graph 1000": (base, GRAPH % 200),
        "model": (base, ON_ONE_DEVICE),
        "plan": (base, BY_A_PLAN),
        "model call": (base, CALL_ON_ONE_DEVICE),
        "plan call": (base, CALL_BY_A_PLAN),
    }
    mpi = mpi_flags()
    if mpi is None:
        print("MPI or Boost.MPI not found: omitting the lines with MPI", file=sys.stderr)
    else:
        variants["mpi"] = base + mpi, PROGRAM
        variants["mpi compiled"] = base + mpi + COMPILED, PROGRAM
        variants["mpi library"] = base + mpi + COMPILED, LIBRARY
    seconds, megabytes = rounds(variants, ROUNDS)
    report("include_vs_std", ratio(seconds["include"], seconds["std"]))
    report("include_compiled_vs_std", ratio(seconds["include compiled"], seconds["std"]))
    report("std_seconds", seconds["std"], "s")
    report("include_seconds", seconds["include"], "s")
    report("include_mb", megabytes["include"], "MB", 0)
    report("redistribute_ms", [1000 * (many - few) / (MANY - FEW) for few, many
                               in zip(seconds["few"], seconds["many"])], "ms", 1)
    for name, kind in (("dtensor_call_s", "calls"), ("tracked_call_s", "tracked")):
        report(name, [(many - few) / (MANY_CALLS - FEW_CALLS) for few, many
                      in zip(seconds["few " + kind], seconds["many " + kind])], "s", 3)
    report("graph_1000_s", [large - small for small, large
                            in zip(seconds["graph"], seconds["graph 1000"])], "s")
    over = {kind: [plan - model for model, plan in zip(seconds["model" + kind], seconds["plan" + kind])]
            for kind in ("", " call")}
    report("plan_s", over[""], "s")
    report("plan_forward_s", [both - plan for plan, both in zip(over[""], over[" call"])], "s")
    if mpi is not None:
        report("program_mpi_s", seconds["mpi"], "s")
        report("program_mpi_compiled_vs_header_only",
               ratio(seconds["mpi compiled"], seconds["mpi"]))
        report("library_mpi_s", seconds["mpi library"], "s")
        report_whole_programs([compiler, "-std=c++20", "-O2", *mpi])

    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not pathlib.Path(nvcc).exists():
        return print("nvcc not found: omitting the lines of nvcc", file=sys.stderr)
    base = [nvcc, "-x", "cu", "-std=c++20", "-O0", "--expt-relaxed-constexpr", "--extended-lambda",
            "-arch=sm_80"]
    seconds, _ = rounds({
        "program": (base, CUDA_PROGRAM),
        "compiled": (base + COMPILED, CUDA_PROGRAM),
        "library": (base + COMPILED, CUDA_LIBRARY),
    }, FEWER_ROUNDS)
    report("cuda_program_s", seconds["program"], "s")
    report("cuda_program_compiled_vs_header_only", ratio(seconds["compiled"], seconds["program"]))
    report("cuda_library_s", seconds["library"], "s")


if __name__ == "__main__":
    main(*sys.argv[1:])
