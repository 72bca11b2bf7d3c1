#!/usr/bin/env python3
"""An elementwise operation that is added as CONTRIBUTING.md shows, a struct with a line and a naive
definition, is called, verified and documented without further edits.

usage: add_operation.py SOURCE_ROOT COMPILER [-isystem=DOCTEST]

The operation is added to a copy of the headers and of the verifier. With a wrong definition, the
verifier must fail.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

PROGRAM = """#include <type_traits>

#include <cleave/cleave.hpp>

#include "naive/activations.hpp"
#include "on_meshes.hpp"
#include "slopes.hpp"
#include "subject.hpp"

using namespace cleave;
using namespace cleave::testing;

std::vector<Subject> added() {
  std::vector<Subject> subjects;
  ops::listing::each_registered<ops::topics::activations>([&](const auto& entry) {
    if constexpr (std::is_same_v<typename std::remove_cvref_t<decltype(entry)>::op, ops::NAME>)
      add_subjects(entry, subjects);
  });
  return subjects;
}

TEST_CASE("values and gradients of the operation are correct under all placements") {
  const std::vector<Subject> subjects = added();
  REQUIRE(subjects.size() == 1);
  Verdict local;
  verify_local(subjects[0], local);
  verify_slopes(subjects[0], local);
  CAPTURE(local.first);
  CHECK(local.calls > 2);
  CHECK(local.wrong == 0);
  Report report;
  on_ranks({2, 3}, [&](World& world) {
    Verdict verdict;
    each_mesh(world, [&](const MeshState& mesh, int) {
      verify_values(subjects[0], mesh, 100, false, verdict);
      verify_placed_gradients(subjects[0], mesh, 100, true, verdict);
    });
    report.add(world, verdict);
  });
  CAPTURE(report.first());
  CHECK(report.calls() > 10);
  CHECK(report.wrong() == 0);
}

TEST_CASE("the forms of the operation agree") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<axes::dp>(world, {2});
    const auto x = distribute_tensor(Tensor<double, 1>({3}, {-1, 0.5, 2}), mesh, Shard<0>{});
    const auto y = FUNCTION(x);
    const auto asked = FUNCTION<Placements<Replicate>>(x);
    const auto z = zeros_like(x);
    FUNCTION(out(z), x);
    FUNCTION_(x);
    for (const auto& same : {x.full_tensor(), z.full_tensor(), asked.to_local()})
      for (index_t i = 0; i < 3; ++i) CHECK(same.data()[i] == y.full_tensor().data()[i]);
  });
}
"""
SUPPORT = ["main.cpp", "naive.cpp", "ranks.cpp", "processes_one.cpp", "gpu_unneeded.cpp"]


def blocks(text):
    """The struct, the line and the naive definition that a page shows."""
    found = re.findall(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [next(block for block in found if word in block)
            for word in ("struct ", "CLEAVE_UNARY(", "naive_of(")]


def insert(path, end, text):
    """Inserts the text before the last line that is `end`."""
    before, after = path.read_text().rsplit("\n" + end, 1)
    path.write_text(before + "\n" + text + "\n" + end + after)


def compiled(compiler, source, program, flags):
    """The compiler's errors."""
    done = subprocess.run([*compiler, "-std=c++20", "-O0", "-pthread", *flags, *map(str, source),
                           "-o", str(program)],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.strip() if done.returncode else ""


def main(root, compiler, doctest):
    cases = Cases()
    struct, line, naive = blocks((root / "CONTRIBUTING.md").read_text())
    name = re.search(r"struct (\w+)", struct)[1]
    function = re.search(r", (\w+),", line)[1]
    wrong = naive.replace("return x", "return 2 * x")
    with tempfile.TemporaryDirectory() as scratch:
        tree = pathlib.Path(scratch)
        for folder in ("include", "tests/support", "tests/verify", "tests/docs"):
            shutil.copytree(root / folder, tree / folder)
        topic = tree / "include/cleave/ops/elementwise/activations.hpp"
        insert(topic, "}  // namespace ops", struct)
        insert(topic, "}  // namespace cleave", line)
        definitions = tree / "tests/verify/naive/activations.hpp"
        original = definitions.read_text()
        program = tree / "tests/verify/added.cpp"
        program.write_text(PROGRAM.replace("NAME", name).replace("FUNCTION", function))
        flags = [f"-I{tree}/include", f"-I{tree}/tests/support", *doctest]
        sources = [program, *(tree / "tests/support" / source for source in SUPPORT)]
        for kind, definition in (("correct", naive), ("wrong", wrong)):
            definitions.write_text(original)
            insert(definitions, "}  // namespace cleave::testing", definition)
            errors = compiled(compiler, sources, tree / kind, flags)
            if not cases.check(f"the {kind} definition compiles", not errors, errors[:4000]):
                continue
            done = subprocess.run([tree / kind], text=True, timeout=300, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            if kind == "correct":
                cases.check("the verifier accepts the operation",
                            done.returncode == 0 and "2 passed, 0 failed" in done.stdout,
                            done.stdout)
            else:
                cases.check("the verifier rejects a wrong definition",
                            "1 passed, 1 failed" in done.stdout, done.stdout)
        page = tree / "ops_page"
        errors = compiled(compiler, [tree / "tests/docs/ops_page.cpp"], page, flags)
        if cases.check("the page compiles", not errors, errors[:4000]):
            rows = subprocess.run([page], text=True, check=True, stdout=subprocess.PIPE).stdout
            cases.check("the page has a row", f"\n| `{function}(x)` | `ab->ab` |" in rows)
    return cases.finish()


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2].split(), sys.argv[3:]))
