#!/usr/bin/env python3
"""Trains the same models, and updates the same table, with PyTorch and with Rowan, in turns, and prints the ratios.

Needs Debian's python3-torch and python3-numpy: run with /usr/bin/python3.
    bench_peers.py [--rowan build/release/rowan] [--rounds 3] [--threads 2] [--only NAME]... [--json FILE]

PyTorch's side is eager float32 with what its version has fused: layer_norm, gelu, cross_entropy, AdamW(foreach), addmm; attention
by two batched products and a softmax, as nanoGPT does where there is no flash attention. Every measurement runs in a process of
its own, so that peak memory is its own; a figure is the median over the rounds of the medians over a run's steps. Nothing else
should run meanwhile.
"""
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONG = ["data.batch_size=1", "data.seq_len=1024"]
MODELS = {  # name: config, settings, steps to measure
    "0.8M, 12 x 64": ("shakespeare_char_cpu", ["model.vocab_size=65"], 60),
    "10.6M, 16 x 256": ("gpt_10m", [], 3),
    "124M, 4 x 64": ("gpt2_124m", [], 4),
    "124M, 1 x 1024": ("gpt2_124m", LONG, 2),
    "Llama shape, 1 x 4096": ("llama_4k", ["train.grad_accum=1"], 2),
}
TABLES = {  # name: rows, width, tokens, exponent
    "table 50257 x 768, 1024 tokens": (50257, 768, 1024, 1.0),
    "table 50257 x 768, 16384 tokens": (50257, 768, 16384, 1.0),
}


def median_time(step, count):
    times = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def torch_model(c, torch):
    """Parameters and the loss of a batch, for what a resolved config's [model] says."""
    F, m = torch.nn.functional, c["model"]
    d, v, heads = m["d_model"], m["vocab_size"], m["n_head"]
    kv, hd = m["n_kv_head"] or heads, d // heads
    ff = m["d_ff"] or (-(-8 * d // 3 // 32) * 32 if m["mlp"] == "swiglu" else 4 * d)
    p = {}

    def weight(name, *shape, bias=m["bias"]):
        p[name] = torch.nn.Parameter(torch.randn(*shape) * 0.02)
        if bias:
            p[name + ".bias"] = torch.nn.Parameter(torch.zeros(shape[0]))

    def norm_weight(name):
        p[name] = torch.nn.Parameter(torch.ones(d))
        if m["bias"] and m["norm"] == "layernorm":
            p[name + ".bias"] = torch.nn.Parameter(torch.zeros(d))

    weight("tokens", v, d, bias=False)
    if m["positions"] == "learned":
        weight("positions", m["max_seq_len"], d, bias=False)
    for i in range(m["n_layer"]):
        norm_weight(f"{i}.norm1")
        weight(f"{i}.qkv", (heads + 2 * kv) * hd, d)
        weight(f"{i}.out", d, d)
        norm_weight(f"{i}.norm2")
        if m["mlp"] == "swiglu":
            weight(f"{i}.gate", ff, d)
        weight(f"{i}.up", ff, d)
        weight(f"{i}.down", d, ff)
    norm_weight("norm")
    if not m["tied"]:
        weight("head", v, d, bias=False)

    def linear(name, x):
        return F.linear(x, p[name], p.get(name + ".bias"))

    def norm(name, x):
        if m["norm"] == "rmsnorm":
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + m["norm_eps"]) * p[name]
        return F.layer_norm(x, (d,), p[name], p.get(name + ".bias"), m["norm_eps"])

    length = c["data"]["seq_len"]
    hidden = torch.ones(length, length).triu(1).bool()
    angle = torch.arange(length)[:, None] * m["rope"]["theta"] ** (-torch.arange(0, hd, 2) / hd)[None]
    cos, sin = angle.cos(), angle.sin()

    def rotate(x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def attention(i, x):
        n, t, _ = x.shape
        parts = linear(f"{i}.qkv", x).split([heads * hd, kv * hd, kv * hd], -1)
        q, k, w = (y.view(n, t, -1, hd).transpose(1, 2) for y in parts)
        if m["positions"] == "rope":
            q, k = rotate(q), rotate(k)
        k, w = k.repeat_interleave(heads // kv, 1), w.repeat_interleave(heads // kv, 1)
        score = (q @ k.transpose(-1, -2) * hd**-0.5).masked_fill(hidden, float("-inf"))
        return linear(f"{i}.out", (score.softmax(-1) @ w).transpose(1, 2).reshape(n, t, d))

    def mlp(i, x):
        if m["mlp"] == "swiglu":
            return linear(f"{i}.down", F.silu(linear(f"{i}.gate", x)) * linear(f"{i}.up", x))
        return linear(f"{i}.down", F.gelu(linear(f"{i}.up", x), approximate="tanh" if m["mlp"] == "gelu_tanh" else "none"))

    def loss(tokens, targets):
        x = F.embedding(tokens, p["tokens"])
        if m["positions"] == "learned":
            x = x + p["positions"][: tokens.shape[1]]
        for i in range(m["n_layer"]):
            x = x + attention(i, norm(f"{i}.norm1", x))
            x = x + mlp(i, norm(f"{i}.norm2", x))
        logits = F.linear(norm("norm", x), p["tokens" if m["tied"] else "head"])
        return F.cross_entropy(logits.view(-1, v), targets.view(-1))

    return list(p.values()), loss


def torch_step(config, steps, torch):
    parameters, loss = torch_model(config, torch)
    matrices = [p for p in parameters if p.dim() > 1]
    rest = [p for p in parameters if p.dim() <= 1]
    o = config["optim"]
    groups = [{"params": matrices, "weight_decay": o["weight_decay"]}, {"params": rest, "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), foreach=True)
    shape = (config["data"]["batch_size"], config["data"]["seq_len"])

    def step():
        tokens, targets = (torch.randint(0, config["model"]["vocab_size"], shape) for _ in range(2))
        loss(tokens, targets).backward()
        torch.nn.utils.clip_grad_norm_(parameters, config["train"]["clip_norm"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()
    return median_time(step, steps)


def torch_table(rows, width, tokens, exponent, torch):
    table = torch.nn.Embedding(rows, width, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters(), lr=1e-3)
    frequency = torch.arange(1, rows + 1, dtype=torch.float64) ** -exponent
    dy = torch.randn(tokens, width)
    touched = []

    def step():
        ids = torch.multinomial(frequency, tokens, replacement=True)
        touched.append(len(ids.unique()))
        start = time.perf_counter()
        table(ids).backward(dy)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - start

    step()
    return statistics.median(step() for _ in range(20)) * 1e3, statistics.mean(touched)


def run_torch(task, threads):
    """In a process of its own."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    if "table" in task:
        ms, touched = torch_table(*task["table"], torch)
        print(json.dumps({"ms": ms, "touched": touched, "version": torch.__version__}))
        return
    ms = torch_step(task["config"], task["steps"], torch)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"ms": ms, "peak": peak, "version": torch.__version__}))


def output_of(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def ask_torch(task, threads):
    return json.loads(output_of([sys.executable, __file__, "--threads", str(threads), "--torch", json.dumps(task)]))


def settings(values):
    return [word for value in values for word in ("--set", value)]


def measure_model(name, options):
    stem, overrides, steps = MODELS[name]
    path = str(ROOT / "configs" / f"{stem}.toml")
    config = tomllib.loads(output_of([options.rowan, "config", "resolve", path] + settings(overrides)))
    command = [options.rowan, "bench", "step", "--config", path, "--json"]
    command += settings(overrides + [f"train.threads={options.threads}"])
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(json.loads(output_of(command)))
        theirs.append(ask_torch({"config": config, "steps": steps}, options.threads))
    median = lambda rows, key: statistics.median(row[key] for row in rows)
    return {
        "work": name,
        "rowan_ms": median(ours, "step_ms"),
        "torch_ms": median(theirs, "ms"),
        "share_of_sgemm": median(ours, "share_of_sgemm"),
        "sgemm_gflops": median(ours, "sgemm_gflops"),
        "rowan_gb": median(ours, "peak_rss_bytes") / 1e9,
        "torch_gb": median(theirs, "peak") / 1e9,
        "torch": theirs[0]["version"],
    }


def measure_table(name, options):
    rows, width, tokens, exponent = TABLES[name]
    command = [options.rowan, "bench", "embedding", "--vocab", str(rows), "--dim", str(width), "--tokens", str(tokens)]
    command += ["--zipf", str(exponent), "--rule", "sparse_adam", "--threads", str(options.threads), "--json"]
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(json.loads(output_of(command)))
        theirs.append(ask_torch({"table": TABLES[name]}, options.threads))
    median = lambda found, key: statistics.median(row[key] for row in found)
    return {
        "work": name,
        "rowan_ms": median(ours, "total_ms"),
        "torch_ms": median(theirs, "ms"),
        "touched_rows": [median(ours, "touched_rows"), median(theirs, "touched")],
        "ratio_to_limit": median(ours, "ratio_to_limit"),
        "torch": theirs[0]["version"],
    }


def table_row(r):
    speedup = r["torch_ms"] / r["rowan_ms"]
    limit = f"{r['share_of_sgemm']:.2f} of sgemm" if "share_of_sgemm" in r else f"{r['ratio_to_limit']:.2f} x the memory's time"
    memory = f"{r['rowan_gb']:.2f} / {r['torch_gb']:.2f}" if "rowan_gb" in r else ""
    return f"| {r['work']} | {r['rowan_ms']:.2f} | {r['torch_ms']:.2f} | {speedup:.1f} | {limit} | {memory} |"


def main():
    names = [*MODELS, *TABLES]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rowan", default=str(ROOT / "build/release/rowan"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", action="append", choices=names, help="one of: " + "; ".join(names), metavar="NAME")
    parser.add_argument("--json", help="write all figures to this file too")
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch:
        return run_torch(json.loads(options.torch), options.threads)
    found = []
    print("| work | Rowan, ms a step | PyTorch, ms a step | times as fast | Rowan's limit | peak memory, GB |")
    print("|---|---|---|---|---|---|")
    for name in options.only or names:
        found.append((measure_model if name in MODELS else measure_table)(name, options))
        print(table_row(found[-1]), flush=True)
    print(f"\nPyTorch {found[0]['torch']}, {options.threads} threads, medians of {options.rounds} rounds in turns.")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
