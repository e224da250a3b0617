// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CBench
import Glibc

/// A system call or a program that did not do what a measurement needs.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  /// The call that has just failed, with the reason in `errno`.
  static func call(_ name: String, _ subject: String = "") -> Failure {
    let reason = String(cString: strerror(errno))
    return Failure(subject.isEmpty ? "\(name): \(reason)" : "\(name) \(subject): \(reason)")
  }
}

/// Throws if a call returned -1; else gives its result back.
@inline(__always) @discardableResult
func check<Result: SignedInteger>(
  _ result: Result, _ call: StaticString
) throws(Failure) -> Result {
  if result < 0 { throw Failure.call("\(call)") }
  return result
}

/// Nanoseconds of CLOCK_MONOTONIC.
func monotonicNanoseconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Makes a directory, which may already exist.
func makeDirectory(_ path: String) throws(Failure) {
  if mkdir(path, 0o755) != 0 && errno != EEXIST { throw Failure.call("mkdir", path) }
}

/// Whether a path leads to anything.
func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

/// Creates or replaces a file.
func writeFile(_ path: String, _ bytes: [UInt8] = []) throws(Failure) {
  let file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0o644)
  if file < 0 { throw Failure.call("open", path) }
  defer { close(file) }
  var offset = 0
  while offset < bytes.count {
    let count = bytes.withUnsafeBytes { write(file, $0.baseAddress.map { $0 + offset }, $0.count - offset) }
    if count <= 0 { throw Failure.call("write", path) }
    offset += count
  }
}

/// Reads a small file to its end; nil if that fails.
func readFile(_ path: String) -> [UInt8]? {
  let file = open(path, O_RDONLY)
  if file < 0 { return nil }
  defer { close(file) }
  var bytes: [UInt8] = []
  var block = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count = read(file, &block, block.count)
    if count < 0 { return nil }
    if count == 0 { return bytes }
    bytes += block[0..<count]
  }
}

/// Writes what is dirty on the filesystem of a directory, so that one sample does not pay for another.
func settle(_ directory: String) {
  let handle = open(directory, O_RDONLY | O_DIRECTORY)
  if handle < 0 { return }
  _ = bench_syncfs(handle)
  close(handle)
}

/// Prints a line to standard error, where progress and complaints go.
func complain(_ line: String) {
  let text = line + "\n"
  _ = write(2, text, text.utf8.count)
}

/// A small generator (splitmix64) that gives the same numbers in every run.
struct Dice: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
