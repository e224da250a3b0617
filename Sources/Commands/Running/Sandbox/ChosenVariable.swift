// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// A variable that a person gives an app with `--env`.
struct ChosenVariable: Equatable {
  let name: String
  let value: String

  /// Why one is not taken.
  struct Refusal: Error, Equatable {
    let message: String
  }

  init(_ text: String) throws(Refusal) {
    guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else {
      throw Refusal(message: "'\(text.sanitized)' has no '='; write NAME=VALUE")
    }
    name = String(text[..<equals])
    value = String(text[text.utf8.index(after: equals)...])
    guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first),
      name.utf8.allSatisfy(Self.isInNames)
    else {
      throw Refusal(
        message: "'\(name.sanitized)' is not a name: it takes letters, digits and '_', and no digit first")
    }
    if SandboxEnvironment.isOwn(name) {
      throw Refusal(
        message: "\(name) can't be set: it belongs to the sandbox, which gives the app its places")
    }
    if name.hasPrefix("INSULA_") {
      throw Refusal(message: "\(name) can't be set: names that begin with INSULA_ are Insula's own")
    }
    if name.hasPrefix("LD_") || name.hasPrefix("MALLOC_") || Self.loaders.contains(name) {
      throw Refusal(
        message: "\(name) can't be set: the loader and the C library would obey it in bubblewrap too, "
          + "which creates the sandbox; for the app alone, use '-- env \(name)=... COMMAND'")
    }
  }

  /// What glibc removes for a program with more rights than its caller: it names files to load or to read.
  private static let loaders: Set = [
    "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES", "LOCALDOMAIN", "LOCPATH", "NIS_PATH",
    "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS", "TZDIR",
  ]

  private static func isInNames(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
