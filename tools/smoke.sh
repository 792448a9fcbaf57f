#!/usr/bin/env bash
# A short life of a run for each of the small configs: train, stop, resume to the bits of an undisturbed run, evaluate, sample,
# inspect. tools/smoke.sh ROWAN [CONFIG...]      ROWAN is the program, e.g. build/release/rowan
set -euo pipefail

rowan=$(realpath "${1:?"the rowan program"}")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $# -gt 0 ]] || set -- configs/{kjv_char,shakespeare_char_cpu,shakespeare_llama_sparse,smoke,sort_abc}.toml

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
tools/fetch_kjv.sh "$work/kjv.txt"
head -c 200000 "$work/kjv.txt" >"$work/text.txt"

# Runs quietly; shows what was printed when it fails.
quietly() {
  if ! "$@" >"$log" 2>&1; then
    echo "smoke.sh: failed: $*" >&2
    cat "$log" >&2
    exit 1
  fi
}

for config in "$@"; do
  name=$(basename "$config" .toml)
  started=$SECONDS
  settings=(--set train.schedule.decay_steps=20 --set train.schedule.warmup=2 --set train.eval_every=5
    --set train.sample_every=0 --set checkpoint.every=5)
  [[ $name == sort_abc ]] || settings+=(--set "data.train=$work/text.txt")
  quietly "$rowan" train "$config" "${settings[@]}" --set train.steps=20 --out "$work/$name-whole"
  quietly "$rowan" train "$config" "${settings[@]}" --set train.steps=10 --out "$work/$name-parts"
  quietly "$rowan" resume "$work/$name-parts" --set train.steps=20
  whole=$("$rowan" inspect "$work/$name-whole" --digest)
  parts=$("$rowan" inspect "$work/$name-parts" --digest)
  if [[ $whole != "$parts" ]]; then
    echo "smoke.sh: $name: resumed to $parts, an undisturbed run to $whole" >&2
    exit 1
  fi
  quietly "$rowan" inspect "$work/$name-whole" --verify
  quietly "$rowan" eval "$work/$name-whole"
  prompt="In the "
  [[ $name != sort_abc ]] || prompt=CABBAC
  quietly "$rowan" sample "$work/$name-whole" --prompt "$prompt" --tokens 10
  echo "$name: digest $whole, $((SECONDS - started)) s"
done
