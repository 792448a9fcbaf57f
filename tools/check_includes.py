#!/usr/bin/env python3
"""Checks who includes whom. Run from anywhere: tools/check_includes.py [ROOT]

Our own headers go one way: core <- layers, optim <- train <- tools; layers and optim never see each other. A library is included
where it belongs and nowhere else, and no header that is installed includes one, so that a program which uses librowan needs
nothing but librowan: a header that needs a library bears its name (checkpoint_hdf5_handles.h), and CMake does not install it. Prints one line per offence and exits with 1 when there is any.
"""
import re
import sys
from pathlib import Path

MAY_INCLUDE = {
    "core": {"core"},
    "layers": {"layers", "core"},
    "optim": {"optim", "core"},
    "train": {"train", "layers", "optim", "core"},
    "tools": {"tools", "train", "core"},
    "tests": {"tests", "tools", "train", "layers", "optim", "core"},
}
LIBRARY_AREAS = ("core", "layers", "optim", "train")  # what is in librowan

# A library's headers, and the files that may include them.
LIBRARIES = [
    ("BLAS, oneDNN and OpenMP", r"(cblas|f77blas|openblas\w*|omp)\.h|dnnl.*|oneapi/.*", r"core/kernels/.*"),
    ("HDF5", r"hdf5.*\.h|H5\w*\.h", r"train/checkpoint\w*\.(h|cpp)|tests/.*"),
    ("toml++", r"toml.*", r"train/config\w*\.(h|cpp)|tests/.*"),
    ("Boost.Math", r"boost/.*", r"train/compare_statistics\.cpp"),
    ("CLI11", r"CLI/.*", r"tools/.*"),
    ("fmt, JSON and xxHash", r"fmt/.*|nlohmann/.*|xxhash\.h", r"(train|tools|tests)/.*"),
    ("GoogleTest", r"(gtest|gmock)/.*", r"tests/.*"),
]
STANDARD = re.compile(r"[a-z_0-9]+|(assert|errno|limits|locale|math|signal|stdint|stdio|stdlib|string|time)\.h")
SYSTEM = re.compile(r"(sys|linux|arpa|netinet)/.*|(malloc|unistd|fcntl|fnmatch|ftw|poll|sched|pthread|dirent|dlfcn|termios|[a-z0-9]+intrin|cpuid)\.h")
PRIVATE_HEADER = re.compile(r"_(hdf5|toml|json|blas|dnnl)(_\w+)?\.h$")  # install(DIRECTORY ...) in CMakeLists.txt has the same names
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    """(line, is_ours, name) of every include in a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


def own_header_fault(root, area, name):
    if not (root / name).is_file():
        return f'"{name}" does not exist; headers are named from the top of the tree'
    target = name.split("/")[0]
    if target not in MAY_INCLUDE[area]:
        return f'{area} must not include {target} ("{name}")'
    return None


def library_header_fault(file, area, name):
    for library, headers, allowed in LIBRARIES:
        if not re.fullmatch(headers, name):
            continue
        if not re.fullmatch(allowed, file):
            return f"<{name}>: {library} may be included in {allowed} only"
        if area in LIBRARY_AREAS and file.endswith(".h") and not PRIVATE_HEADER.search(file):
            return f"<{name}>: a header that is installed must not need {library}"
        return None
    if STANDARD.fullmatch(name) or SYSTEM.fullmatch(name):
        return None
    return f"<{name}>: this library is unknown to tools/check_includes.py"


def cycles(graph):
    """Headers that include themselves in the end, each cycle once."""
    done, found = set(), []

    def walk(node, path):
        if node in path:
            found.append(path[path.index(node):] + [node])
        elif node not in done:
            for target in graph.get(node, ()):
                walk(target, path + [node])
            done.add(node)

    for node in sorted(graph):
        walk(node, [])
    return found


def check(root):
    faults, graph = [], {}
    for area in MAY_INCLUDE:
        for path in sorted([*root.glob(f"{area}/**/*.h"), *root.glob(f"{area}/**/*.cpp")]):
            file = path.relative_to(root).as_posix()
            if file.startswith("tests/consumer/"):  # a project of its own
                continue
            for line, ours, name in includes(path):
                fault = own_header_fault(root, area, name) if ours else library_header_fault(file, area, name)
                if fault:
                    faults.append(f"{file}:{line}: {fault}")
                elif ours:
                    graph.setdefault(file, []).append(name)
    faults += [f"{cycle[0]}: includes itself: {' -> '.join(cycle)}" for cycle in cycles(graph)]
    return faults


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    faults = check(root)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
