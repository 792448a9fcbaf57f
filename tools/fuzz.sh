#!/usr/bin/env bash
# Fuzzes what reads bytes from outside (tests/fuzz), with addresses and undefined behaviour checked:
#   tools/fuzz.sh [SECONDS [TARGET...]]     60 seconds each, all targets
# Prints a line a target: executions, coverage (edges and features of the code), inputs that found something new, findings. What a
# finding needs to happen again is left in build/fuzz/findings; exit code 1 when there is one. No input may take more than 10
# seconds or, in one piece, 256 MB of memory. As many targets run at once as there are cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
shift || true
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || targets=(config checkpoint resume token_file tokenizer command_line)

mkdir -p build
export CCACHE_BASEDIR=$PWD
if ! { cmake --preset fuzz && cmake --build build/fuzz -j "$(nproc)" --target fuzz_targets; } >build/fuzz-build.log 2>&1; then
  cat build/fuzz-build.log >&2
  exit 1
fi
findings=$PWD/build/fuzz/findings
mkdir -p "$findings"
cores=$(nproc)           # before the next line, which nproc obeys
export OMP_NUM_THREADS=1 # a thread of its own for every product would cost more than the product

number_of() { # the last number after this word in a log
  grep -aoE "$1:? +[0-9]+" "$2" | tail -n 1 | grep -oE '[0-9]+$' || echo 0
}

count_findings() { find "$findings" -type f -name "$1-*" | wc -l; }

# Fuzzes one target and prints its line of the table; fails when something was found.
run_target() {
  local target=$1 corpus=build/fuzz/corpus/$1 log=build/fuzz/$1.log before status=0 dictionary
  mkdir -p "$corpus"
  local options=(-max_total_time="$seconds" -timeout=10 -malloc_limit_mb=256 -rss_limit_mb=2048 -print_final_stats=1 -seed=1
    -artifact_prefix="$findings/$target-" -max_len=16384)
  for dictionary in "tests/fuzz/$target.dict" "tests/fuzz/toml.dict"; do
    [[ -e $dictionary && ($dictionary == *"/$target.dict" || $target == config) ]] && options+=(-dict="$dictionary")
  done
  before=$(count_findings "$target")
  build/fuzz/tests/fuzz/fuzz_"$target" "${options[@]}" "$corpus" "tests/fuzz/seeds/$target" >"$log" 2>&1 || status=$?
  local found=$(($(count_findings "$target") - before))
  printf '%-14s %12s %8s %10s %8s %10s\n' "$target" "$(number_of stat::number_of_executed_units "$log")" "$(number_of cov "$log")" \
    "$(number_of ft "$log")" "$(find "$corpus" -type f | wc -l)" "$found"
  if [[ $status -ne 0 ]]; then tail -n 40 "$log" >&2; fi
  [[ $status -eq 0 && $found -eq 0 ]]
}

# One process a core: a target has one thread.
printf '%-14s %12s %8s %10s %8s %10s\n' target executions edges features corpus findings
failed=0 running=0
for target in "${targets[@]}"; do
  if [[ $running -ge $cores ]]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  run_target "$target" &
  running=$((running + 1))
done
for (( ; running > 0; --running)); do wait -n || failed=1; done
exit "$failed"
