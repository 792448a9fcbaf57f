#!/usr/bin/env bash
# From a fresh Debian or Ubuntu to a trained model: installs the packages, builds a release, fetches the King James text, trains
# configs/kjv_char.toml (about two minutes on two cores) and prints a sample. Run as root, or as a user with sudo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tools/install_packages.sh build text
ROWAN_CMAKE_ARGS=-DROWAN_TESTS=OFF tools/build.sh release
tools/fetch_kjv.sh runs/data/kjv.txt

run=runs/kjv_char
for ((n = 2; ; ++n)); do # an earlier run is left alone
  [[ -e $run ]] || break
  run=runs/kjv_char-$n
done
rowan=build/release/rowan
"$rowan" train configs/kjv_char.toml --out "$run"
echo
"$rowan" sample "$run" --prompt "In the beginning " --tokens 400 --seed 1
echo
echo "The run lies in $run. Go on with, for example:"
echo "  $rowan sample $run --prompt 'And God said, '"
echo "  $rowan eval $run"
echo "  $rowan inspect $run"
