#!/usr/bin/env bash
# Installs what the tests need, builds a release and runs every test. Run as root, or as a user with sudo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tools/install_packages.sh build test text
ROWAN_CMAKE_ARGS=-DROWAN_TESTS=ON tools/build.sh release # run.sh configures the same folder without tests
ctest --test-dir build/release --output-on-failure --no-tests=error -j "$(nproc)"
