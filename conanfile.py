"""A Conan 2 package of the headers, for ranks that are threads: `conan create .` in this folder.

Meson builds what needs MPI and other libraries; programs may define CLEAVE_COMPILED=1 and include
<cleave/compiled.hpp> in one of their files (docs/compiling.md).
"""

import pathlib
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy


class Cleave(ConanFile):
    name = "cleave"
    license = "BSL-1.0"
    description = "Distributed tensors for C++20, with placements in their types"
    topics = ("tensors", "distributed", "hpc", "mpi", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    exports_sources = "include/*", "LICENSE"
    no_copy_source = True

    def set_version(self):
        header = pathlib.Path(self.recipe_folder, "include/cleave/version.hpp").read_text()
        self.version = ".".join(re.findall(r"#define CLEAVE_VERSION_[A-Z]+ (\d+)$", header, re.MULTILINE))

    def validate(self):
        check_min_cppstd(self, 20)

    def package(self):
        copy(self, "*", pathlib.Path(self.source_folder, "include"),
             pathlib.Path(self.package_folder, "include"))
        copy(self, "LICENSE", self.source_folder, pathlib.Path(self.package_folder, "licenses"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        self.cpp_info.system_libs = ["pthread"]
