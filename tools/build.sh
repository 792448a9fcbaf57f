#!/usr/bin/env bash
# Configures and builds presets of CMakePresets.json into build/<preset>: tools/build.sh release [gradcheck ...]
# ROWAN_CMAKE_ARGS is passed on to the configuration, e.g. ROWAN_CMAKE_ARGS=-DROWAN_TESTS=OFF
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -r -a extra <<<"${ROWAN_CMAKE_ARGS:-}" || true # an empty text is no failure
export CCACHE_BASEDIR=$PWD                           # a checkout elsewhere finds the same objects
for preset in "$@"; do
  log=build/$preset-configure.log
  mkdir -p build
  if ! cmake --preset "$preset" "${extra[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
  cmake --build "build/$preset" -j "$(nproc)"
done
