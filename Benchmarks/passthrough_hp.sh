#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# Builds libfuse's example passthrough_hp from Debian's source of the libfuse that is installed, for the benchmark.
# usage: passthrough_hp.sh [PROGRAM]        (default Benchmarks/.build/passthrough_hp)
set -euo pipefail
program=$(realpath -m "${1:-$(dirname "${BASH_SOURCE[0]}")/.build/passthrough_hp}")

die() { echo "passthrough_hp: $*" >&2; exit 1; }
for tool in dpkg-source g++ pkg-config curl; do
  command -v "$tool" >/dev/null || die "missing: $tool. apt-get install dpkg-dev g++ pkg-config curl"
done
version=$(dpkg-query -W -f '${source:Version}' libfuse3-dev 2>/dev/null) || die "missing: apt-get install libfuse3-dev"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
pool=${DEBIAN_MIRROR:-https://deb.debian.org/debian}/pool/main/f/fuse3
description=fuse3_$version.dsc
curl -fsSLO --max-time 60 "$pool/$description" || die "no $pool/$description; DEBIAN_MIRROR may be another mirror"
# The description names the parts and their digests, by which dpkg-source checks them.
for part in $(awk '/^Checksums-Sha256:/ { inside = 1; next } /^[^ ]/ { inside = 0 } inside { print $3 }' "$description"); do
  curl -fsSLO --max-time 120 "$pool/$part" || die "no $pool/$part"
done
dpkg-source --extract "$description" source >/dev/null
mkdir -p "$(dirname "$program")"
# shellcheck disable=SC2046
g++ -O2 -DHAVE_SETXATTR -DHAVE_UTIMENSAT -DHAVE_POSIX_FALLOCATE -DHAVE_STRUCT_STAT_ST_ATIM -o "$program" source/example/passthrough_hp.cc -Isource $(pkg-config --cflags --libs fuse3) -lpthread
echo "Built $program of libfuse $version."
