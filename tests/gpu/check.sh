#!/usr/bin/env bash
# The GPU check: one script, at most eight minutes, nothing downloaded; a summary, and a JSON file at the end.
#
#   tests/gpu/check.sh --collect DIR            on any machine with an index: fill DIR with the wheels that travel
#   tests/gpu/check.sh --wheels DIR             on the GPU machine (Python 3.12 with torch, cupy, numpy)
#   tests/gpu/check.sh --device cpu             a dry run without a GPU
#
# Further: --out FILE (default gpu-check.json), --limit SECONDS (default 470), --only STEP[,STEP…], --python PYTHON
# (default python3), --list. Exit status: 0 when every step passed or was skipped, 1 when one failed, 2 for bad usage.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3} wheels="" collect=""
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --wheels | --collect | --python)
      [ $# -ge 2 ] || { echo "check.sh: $1 needs a value" >&2; exit 2; }
      case $1 in --wheels) wheels=$2 ;; --collect) collect=$2 ;; --python) python=$2 ;; esac
      shift 2 ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) arguments+=("$1"); shift ;;
  esac
done

if [ -n "$collect" ]; then
  mkdir -p "$collect"
  # For CPython 3.12 on x86-64 Linux, whatever runs here. Nothing is resolved, so no torch and no numpy can slip in.
  "$python" -m pip download --quiet --no-deps --only-binary=:all: --dest "$collect" \
    --python-version 3.12 --implementation cp --abi cp312 --abi abi3 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --platform any \
    --requirement "$here/requirements.txt"
  # The project itself is not among them: it runs from its source tree.
  ls "$collect"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "$wheels" ]; then
  [ -d "$wheels" ] || { echo "check.sh: there is no folder $wheels; fill one with --collect" >&2; exit 2; }
  # Unpacked, not installed: needs neither pip nor a virtual environment, and leaves the machine as it was.
  for wheel in "$wheels"/*.whl; do
    [ -e "$wheel" ] || { echo "check.sh: $wheels holds no wheels; fill it with --collect" >&2; exit 2; }
    "$python" -m zipfile -e "$wheel" "$work/site"
  done
  export PYTHONPATH="$root:$work/site${PYTHONPATH:+:$PYTHONPATH}"
else
  export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
fi
"$python" "$here/check.py" --work "$work" "${arguments[@]+"${arguments[@]}"}"
