#!/usr/bin/env bash
# The checks that take too long for every change, over a release build: tools/nightly.sh [faults] [resume] [damage] [plan] [fuzz]
# Without a name: all of them. ROWAN_FUZZ_SECONDS: for each fuzz target (600). A slice, where a night is too short: every n-th case
# with ROWAN_FAULT_STRIDE, ROWAN_RESUME_STRIDE, ROWAN_DAMAGE_STRIDE (1), and ROWAN_FAULT_KILLS (500). The figures that they print
# are those of docs/RELIABILITY.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

phase_faults() { # every call of a run fails or is the last; 500 kills; devices that fill up
  ROWAN_FAULT_STRIDE=${ROWAN_FAULT_STRIDE:-1} ROWAN_FAULT_KILLS=${ROWAN_FAULT_KILLS:-500} build/release/tests/faults/test_faults
}

phase_resume() { # exact resume from every step of every combination
  ROWAN_RESUME_STRIDE=${ROWAN_RESUME_STRIDE:-1} build/release/tests/test_train --gtest_filter='ResumeSweep.*'
}

phase_damage() { # the program on every changed byte and every truncation of a checkpoint
  ROWAN_DAMAGE_STRIDE=${ROWAN_DAMAGE_STRIDE:-1} build/release/tests/test_tools --gtest_filter='DamagedFile.*'
}

phase_plan() { tools/check_plan.py; } # what plan predicts beside what steps take; wants a machine without other work

phase_fuzz() { tools/fuzz.sh "${ROWAN_FUZZ_SECONDS:-600}"; }

[[ $# -gt 0 ]] || set -- faults resume damage plan fuzz
tools/build.sh release
for name in "$@"; do
  echo "=== $name"
  started=$SECONDS
  "phase_$name"
  echo "=== $name: $((SECONDS - started)) s"
done
