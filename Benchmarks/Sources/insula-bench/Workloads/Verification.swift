// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// `insula verify` of a signed bundle, compared to `openssl dgst -sha256` over the same files by one process.
///
/// The bundle lies in the plain directory for both, so this is no row about a mount.
struct Verification: Workload {
  let name: String
  let title: String
  let unit = Unit.runs
  let repeats = false

  private let files: Int
  private let sizes: ClosedRange<Int>
  /// By contender: the build of insula that verifies for it.
  private let programs: [String: String]
  /// Where the plain directory's contender works.
  private let place: String
  private let scratch: String
  private var command: [String] = []

  private var bundle: String { name + ".app" }

  static func rows(_ arguments: Arguments) -> [any Workload] {
    // In the order of the runs, the first contender has made the bundle's directory when the next one comes.
    let place = (arguments.contenders.first?.directory ?? "") + "/work/verify"
    func row(_ name: String, _ title: String, _ files: Int, _ sizes: ClosedRange<Int>) -> Verification {
      Verification(
        name: name, title: title, files: files, sizes: sizes, programs: arguments.programs, place: place,
        scratch: arguments.scratch)
    }
    return [
      row("verify-1g", "verify 1 GiB / openssl dgst", 64, (16 << 20)...(16 << 20)),
      row("verify-20k", "verify 20,000 files / openssl dgst", 20_000, 200...4000),
    ]
  }

  private init(
    name: String, title: String, files: Int, sizes: ClosedRange<Int>, programs: [String: String],
    place: String, scratch: String
  ) {
    self.name = name
    self.title = title
    self.files = files
    self.sizes = sizes
    self.programs = programs
    self.place = place
    self.scratch = scratch
  }

  mutating func setUp(for contender: Contender) throws(Failure) {
    // Roots and identities of its own.
    setenv("XDG_CONFIG_HOME", scratch + "/config", 1)
    if !exists("\(place)/\(bundle)/Contents/_CodeSignature") { try make() }
    if let program = programs[contender.name] {
      command = [program, "verify", "\(place)/\(bundle)"]
    } else {
      // All that a verification reads, by names as short as can be: there is a limit to a command line.
      let others = ["Info.plist", "MacOS/\(name)", "Resources/Welcome.txt"]
      command =
        ["openssl", "dgst", "-sha256"]
        + (others + (0..<files).map(Self.path)).map { "\(bundle)/Contents/\($0)" }
    }
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(1) { () throws(Failure) in try Child.run(command) }
  }

  private static func path(_ number: Int) -> String { "Resources/\(number / 200)/\(number)" }

  private func make() throws(Failure) {
    guard let program = programs.values.sorted().first else { throw Failure("no --program to sign with") }
    try Child.run(["rm", "-rf", "\(place)/\(bundle)", "\(place)/\(name).entitlements"])
    try Child.run([program, "new-app", name, place])
    var dice = Dice(seed: 1)
    for number in 0..<files {
      if number % 200 == 0 { try makeDirectory("\(place)/\(bundle)/Contents/Resources/\(number / 200)") }
      var bytes = [UInt8](repeating: 0, count: Int.random(in: sizes, using: &dice))
      bytes.withUnsafeMutableBytes { buffer in
        for index in stride(from: 0, to: buffer.count - 7, by: 8) {
          buffer.storeBytes(of: dice.next(), toByteOffset: index, as: UInt64.self)
        }
      }
      try writeFile("\(place)/\(bundle)/Contents/\(Self.path(number))", bytes)
    }
    if !exists(scratch + "/root.pem") {
      try Child.run([program, "identity", "new", "Bench"])
      try Child.run([program, "identity", "export", "Bench", "--certificate", scratch + "/root.pem"])
      try Child.run([program, "trust", "add", scratch + "/root.pem"])
    }
    try Child.run([program, "sign", "\(place)/\(bundle)"])
  }
}
