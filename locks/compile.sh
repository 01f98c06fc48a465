#!/usr/bin/env bash
# Writes the locks: hash-pinned, naming no registry (docs/adr/0003). A step's lock is a part of the whole's, so that a
# laptop and an image run the same versions.   usage: locks/compile.sh [steps]   (UV=path of uv)
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
  "${UV:-uv}" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
    --no-annotate "$@"
}
if [[ "${1:-all}" == all ]]; then
  compile pyproject.toml --extra app --group dev -o locks/seatrial.txt
fi
mkdir -p locks/steps
for contract in steps/*/contract.py; do
  package="$(basename "$(dirname "$contract")")"
  extra="${package//_/-}"
  compile pyproject.toml --extra "$extra" -c locks/seatrial.txt -o "locks/steps/$extra.txt"
done
# The image builder of a cluster without kaniko: what its modules import.
echo pydantic | compile - -c locks/seatrial.txt -o locks/builder.txt
