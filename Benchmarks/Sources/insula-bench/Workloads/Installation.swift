// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// `insula install` of a signed bundle, compared to `cp -a` of it with the one `sync -f` that an installation
/// does too: what is installed is on disk.
///
/// Source, copy and store lie in the plain directory for both, so this is no row about a mount. The place is
/// new each time.
struct Installation: Workload {
  let name: String
  let title: String
  let unit = Unit.runs
  let repeats = false

  /// Makes the bundle.
  private var maker: any Workload
  private let bundle: String
  /// By contender: the build of insula that installs for it.
  private let programs: [String: String]
  private let place: String
  private let scratch: String
  private var contender = ""

  static func rows(_ arguments: Arguments) -> [any Workload] {
    let place = (arguments.contenders.first?.directory ?? "") + "/work/verify"
    return Verification.rows(arguments).map { maker in
      let size = maker.name.dropFirst("verify-".count)
      return Installation(
        name: "install-\(size)",
        title: size == "1g" ? "install 1 GiB / cp -a, sync" : "install 20,000 files / cp -a, sync",
        maker: maker, bundle: "\(place)/\(maker.name).app",
        programs: arguments.programs, place: place, scratch: arguments.scratch)
    }
  }

  private init(
    name: String, title: String, maker: any Workload, bundle: String,
    programs: [String: String], place: String, scratch: String
  ) {
    self.name = name
    self.title = title
    self.maker = maker
    self.bundle = bundle
    self.programs = programs
    self.place = place
    self.scratch = scratch
  }

  mutating func setUp(for contender: Contender) throws(Failure) {
    try maker.setUp(for: contender)
    self.contender = contender.name
  }

  /// All contenders install to the same place, one after the other: there is no room for two.
  mutating func batch(_ meter: inout Meter) throws(Failure) {
    let (copy, store) = ("\(place)/copy.app", "\(place)/store")
    try Child.run(["rm", "-rf", copy, store])
    guard let program = programs[contender] else {
      let command = ["sh", "-c", "cp -a \"$1\" \"$2\" && sync -f \"$2\"", "sh", bundle, copy]
      return try meter.time(1) { () throws(Failure) in try Child.run(command) }
    }
    try Child.run([program, "init", store])
    try Child.run([program, "trust", "add", scratch + "/root.pem", "--store", store])
    try meter.time(1) { () throws(Failure) in
      try Child.run([program, "install", bundle, "--store", store])
    }
  }
}
