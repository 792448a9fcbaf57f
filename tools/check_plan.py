#!/usr/bin/env python3
"""Compares what `rowan plan` predicts with what `rowan bench step` then takes: memory within a tenth, a step's time within a quarter.

    tools/check_plan.py [--rowan build/release/rowan] [CONFIG [--set key=value ...]]

Without a config: the table in docs/PERFORMANCE.md. On a machine without other work; exit code 1 when a prediction is off.
"""
import argparse
import json
import subprocess
import sys

CASES = [
    ("shakespeare_char_cpu", ["model.vocab_size=65"]),
    ("gpt_10m", ["model.vocab_size=65"]),
    ("gpt2_124m", []),
    ("gpt2_124m", ["data.batch_size=1", "data.seq_len=1024"]),
    ("llama_4k", ["train.grad_accum=1"]),
]
MEMORY, TIME = 0.10, 0.25
ROUNDS = 3  # of plan and steps in turns: the machine's state changes, and both should see the same


def ask(rowan, command, config, sets):
    arguments = [rowan, *command, config, "--json"]
    for s in sets:
        arguments += ["--set", s]
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def median(values):
    return sorted(values)[len(values) // 2]


def check(rowan, config, sets):
    planned, used = [], []
    for _ in range(ROUNDS):
        planned.append(ask(rowan, ["plan"], config, sets))
        used.append(ask(rowan, ["bench", "step", "--config"], config, sets))
    memory = planned[0]["peak_rss_bytes"], max(u["peak_rss_bytes"] for u in used)
    time = median([p["step_ms"] for p in planned]), median([u["step_ms"] for u in used])
    off = [
        name
        for name, (plan, real), bound in (("memory", memory, MEMORY), ("time", time, TIME))
        if abs(plan / real - 1) > bound
    ]
    name = " ".join([config.removeprefix("configs/").removesuffix(".toml"), *sets])
    print(
        f"{name:<60} {memory[0] / 1e6:8.0f} MB planned {memory[1] / 1e6:8.0f} used  {time[0]:8.1f} ms planned {time[1]:8.1f} used"
        + (f"   {' and '.join(off)} off" if off else ""),
        flush=True,
    )
    return not off


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?")
    parser.add_argument("--rowan", default="build/release/rowan")
    parser.add_argument("--set", action="append", default=[], dest="sets")
    options = parser.parse_args()
    cases = [(options.config, options.sets)] if options.config else [(f"configs/{name}.toml", sets) for name, sets in CASES]
    good = [check(options.rowan, config, sets) for config, sets in cases]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
