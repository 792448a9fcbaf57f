#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that the named sets need and that are missing:
#   tools/install_packages.sh build|text|test|ci ...
# As root, or through sudo. When nothing is missing it needs neither, nor a network.
set -euo pipefail

declare -A sets=(
  [build]="g++ cmake ninja-build pkg-config ccache libopenblas-dev libdnnl-dev libhdf5-dev libtomlplusplus-dev libcli11-dev
           libfmt-dev nlohmann-json3-dev libxxhash-dev libboost-math-dev"
  [text]="bible-kjv"
  [test]="libgtest-dev libgmock-dev python3 python3-h5py hdf5-tools"
  [ci]="git clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 shellcheck"
)

wanted=()
for set in "$@"; do
  if [[ -z ${sets[$set]:-} ]]; then
    echo "install_packages.sh: there is no set '$set'; sets: ${!sets[*]}" >&2
    exit 2
  fi
  read -r -d '' -a packages <<<"${sets[$set]}" || true # read ends at the end of the text, which it calls a failure
  wanted+=("${packages[@]}")
done

installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

missing=()
for package in "${wanted[@]}"; do
  installed "$package" || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "install_packages.sh: apt-get is not here; install what these Debian packages hold: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install_packages.sh: neither root nor sudo; ask for these packages: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "Installing ${missing[*]}"
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 "$@"; }
if ! apt update -qq || ! apt install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; then
  echo "install_packages.sh: apt-get could not install: ${missing[*]}" >&2
  echo "hint: Rowan needs Debian 12 or Ubuntu 24.04, or newer, and their mirrors within reach" >&2
  exit 1
fi
