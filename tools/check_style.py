#!/usr/bin/env python3
"""Rules that neither a compiler nor a formatter checks. Run from anywhere: tools/check_style.py [ROOT]

Prints one line per offence and exits with 1 when there is any.
"""
import re
import sys
from pathlib import Path

LONGEST_FILE = 400  # lines, tests apart
LIBRARY = r"(core|layers|optim|train)/.*"

# (where, where not, what, why). Comments and string literals are blanked out before the search.
FORBIDDEN = [
    (LIBRARY, None, r"(?<![\w.>])(std::)?(_?exit|quick_exit|abort|terminate)\s*\(", "a library never ends the program: throw rowan::Error"),
    (LIBRARY, None, r"std::(cout|cerr|clog)\b|(?<![\w.])(std::)?f?printf\s*\(|(?<![\w.])(std::)?puts\s*\(",
     "a library does not print: give the caller the text"),
    # core/usable_cores.cpp and train/resident_memory.cpp ask the kernel, in /proc and /sys.
    (LIBRARY, r"train/(\w+_)?file\w*\.cpp|.*\.h|core/usable_cores\.cpp|train/resident_memory\.cpp",
     r"(?<![\w.>:])(::)?(open|openat|creat|fopen|pread|pwrite|fsync|rename|unlink|ftruncate|mmap)\s*\(|std::(i|o)?fstream\b",
     "files are reached through train/*file*.cpp: one place to inject faults"),
    (LIBRARY, None, r"throw\s+std::(?!bad_alloc\b)", "rowan::Error is the exception for what users can cause"),
    (LIBRARY, None, r"(?<![\w.])(std::)?s?rand\s*\(|std::random_device|std::mt19937", "randomness comes from core/rng.h, so that runs repeat"),
    (LIBRARY, None, r"std::(stod|stof|strtod|strtof|atof)\b|(?<![\w.])(strtod|atof|setlocale)\s*\(", "depends on the locale: use std::from_chars"),
    (r"tools/.*", r"tools/(bench_\w+|output|sample|guarded|rowan)\.cpp|tools/output\.h", r"fmt::print\s*\(|std::cout\b|(?<![\w.])(std::)?f?printf\s*\(",
     "print through tools/output.h, which shows control characters as escapes"),
    (r".*\.h", None, r"using\s+namespace\b", "a header must not change the names of those who include it"),
]
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|\bnot (yet )?implemented\b|\bDISABLED_", re.IGNORECASE)


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def code_only(text):
    """The text with comments and literals blanked out, so that line numbers stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    return re.sub(pattern, blank, text, flags=re.DOTALL)


def check_file(file, text):
    faults = []
    code = code_only(text)
    for where, where_not, what, why in FORBIDDEN:
        if not re.fullmatch(where, file) or (where_not and re.fullmatch(where_not, file)):
            continue
        for match in re.finditer(what, code):
            faults.append(f"{file}:{code.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}: {why}")
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            faults.append(f"{file}:{number}: something is left to do: {line.strip()}")
    lines = text.count("\n")
    if lines > LONGEST_FILE and not file.startswith("tests/"):
        faults.append(f"{file}: {lines} lines; split what has more than {LONGEST_FILE} by responsibility")
    if file.endswith(".h") and not file.endswith("_body.h") and "#pragma once" not in text:  # a _body.h is included many times
        faults.append(f"{file}: #pragma once is missing")
    return faults


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    faults = []
    for area in ("core", "layers", "optim", "train", "tools", "tests"):
        for path in sorted([*root.glob(f"{area}/**/*.h"), *root.glob(f"{area}/**/*.cpp")]):
            faults += check_file(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
