// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// What a command does with a store that it is told of.
enum StoreUse: Sendable {
  /// Changes it, or has its daemon do something: what a command does that does not say otherwise.
  case changes
  /// Only looks at it.
  case looks
  /// Judges the way to it itself.
  case judgesItself
}

// Whoever may rename something on the way to a store decides which store a path leads to. So no command
// changes a store that is named by such a path: it might be another one than the person means, and another
// one each time that the command walks the path.

extension Context {
  /// Throws if others could put another store in the place of one that a command is told to change; tells of
  /// it if the command only looks.
  ///
  /// An app has the store of its view, whatever it names.
  func judgeStores(of arguments: ParsedArguments, for description: CommandDescription) throws(StoreError) {
    guard description.storeUse != .judgesItself, appSocket == nil, description.takesStore else { return }
    let user = actingUser(arguments, description) ?? ProcessID.user
    for path in paths(of: arguments, description).map(unresolved) {
      let findings = Store.wayFindings(to: path, for: user)
      guard let finding = findings.first(where: \.problem.letsOthersExchange) else { continue }
      guard description.storeUse == .looks else { throw .exchangeable(path: path, finding: finding) }
      console.note("\(finding.path) \(finding.words); \(finding.advice)")
    }
  }

  /// Who is to do it: what lies in a user's own directories is for them to say, if they do it themselves.
  private func actingUser(_ arguments: ParsedArguments, _ description: CommandDescription) -> UInt32? {
    guard isRoot, description.becomesUser, let name = arguments.value("user") else { return nil }
    return Account.named(name)?.uid
  }

  /// The paths by which stores are meant: those that are given, else the usual ones that are there.
  private func paths(of arguments: ParsedArguments, _ description: CommandDescription) -> [String] {
    let given = description.stores(in: arguments)
    guard given.isEmpty else { return given }
    return [defaultMountPoint, defaultStore].filter { path in
      (try? FD.cwd.openFollowing(path, pathOnly | O_DIRECTORY)) != nil
    }
  }
}

extension CommandDescription {
  /// What stands for a store in the help, or for its mount.
  private static let placeholders: Set = ["STORE", "STORE|MOUNTPOINT"]

  /// Whether a store can be named.
  var takesStore: Bool {
    options.contains { Self.placeholders.contains($0.value ?? "") }
      || arguments.contains { Self.placeholders.contains($0.name) }
  }

  /// The stores that are named.
  func stores(in given: ParsedArguments) -> [String] {
    let options = options.filter { Self.placeholders.contains($0.value ?? "") }.map(\.name)
    let places = arguments.indices.filter { Self.placeholders.contains(arguments[$0].name) }
    return options.flatMap(given.allValues) + places.compactMap(given.argument)
  }
}
