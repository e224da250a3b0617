# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Sourced by the other scripts: finds what this machine lacks, and installs it after saying so.

say() { printf '%s\n' "$*"; }
fail() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# need_packages NAME=TEST... : installs each package whose TEST (a program, a pkg-config module as @MODULE, or the path of a file) fails.
need_packages() {
  missing=
  for pair in "$@"; do
    package=${pair%%=*} test=${pair#*=}
    case $test in
      @*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${test#@}" || missing="$missing $package" ;;
      /*) [ -e "$test" ] || missing="$missing $package" ;;
      *) PATH=$PATH:/usr/sbin:/sbin command -v "$test" >/dev/null 2>&1 || missing="$missing $package" ;;
    esac
  done
  [ -z "$missing" ] && return 0
  command="apt-get install -y --no-install-recommends$missing"
  if ! command -v apt-get >/dev/null 2>&1; then
    fail "this needs the packages$missing (their names on Debian); install them and run it again"
  elif [ "$(id -u)" -eq 0 ]; then
    say "Installing what is missing:$missing"
    { apt-get update && DEBIAN_FRONTEND=noninteractive $command; } || fail "'$command' failed"
  elif command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    say "Installing what is missing, with sudo:$missing"
    { sudo apt-get update && sudo DEBIAN_FRONTEND=noninteractive $command; } || fail "'sudo $command' failed"
  else
    fail "this needs$missing; as root, run: apt-get update && $command"
  fi
}

# need_swift : Swift 6.2 or later must be there; it is not ours to install.
need_swift() {
  command -v swift >/dev/null 2>&1 ||
    fail "this needs Swift 6.2 or later; get it from https://www.swift.org/install/linux and put it into PATH"
  version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' | head -n 1)
  set -- $version
  if [ "${1:-0}" -lt 6 ] || { [ "${1:-0}" -eq 6 ] && [ "${2:-0}" -lt 2 ]; }; then
    fail "this needs Swift 6.2 or later, not ${1:-an unknown version}${2:+.$2}; see https://www.swift.org/install/linux"
  fi
}

# release_flags : prints how the program is built, in the project's directory.
# The runtime is linked in where the toolchain has it, so that the program runs wherever it is copied to; what nothing uses of it
# is left out where there is Python, and no blank in the path.
release_flags() {
  flags="-c release --disable-local-rpath"
  library=$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")/lib/swift_static
  core=.build/runtime/libswiftCore.a
  [ -d "$library" ] && flags="$flags --static-swift-stdlib"
  case $PWD in *[[:space:]]*) core= ;; esac
  if [ -n "$core" ] && command -v python3 >/dev/null 2>&1 &&
    mount-scripts/collectable.py "$library/linux/libswiftCore.a" "$core" 2>/dev/null; then
    flags="$flags -Xlinker --remap-inputs=*/libswiftCore.a=$PWD/$core"
  fi
  printf '%s' "$flags"
}
