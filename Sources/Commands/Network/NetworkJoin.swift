// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Daemon
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// `insula network join`.
struct NetworkJoinCommand: Command {
  static let description = CommandDescription(
    name: "network join", summary: "Joins a network: its apps and its Library are in /Network from then on.",
    arguments: [
      .init(name: "URL", help: "the directory of a server that its administrator keeps", isRequired: true)
    ],
    options: [
      .init(
        name: "root", value: "FINGERPRINT",
        help: "trust the network's root that has this fingerprint, without asking"),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The directory has Applications (signed bundles, or archives of 'insula pack'), Library, in Library/Trust
      the certificates of the roots under which the apps are signed, and Users, if homes are to be there. You
      are shown those roots; they are pinned, and count for the network's apps alone. 'insula network update'
      takes what is new.
      """
    ],
    examples: ["sudo insula network join sftp://insula@server.example.org/srv/network"])

  private let address: ServerAddress
  private let root: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    guard let url = arguments.argument(0) else {
      throw Self.description.error("URL is missing (the directory of a server)")
    }
    guard let address = ServerAddress(url) else {
      throw Self.description.error(
        "'\(url.sanitized)' is no address of a server; write one as sftp://USER@HOST/PATH")
    }
    self.address = address
    root = arguments.value("root")?.lowercased().filter { $0 != ":" }
    store = arguments.value("store")
    json = arguments.has("json")
    if let root, root.utf8.count < 16 || !root.allSatisfy(\.isHexDigit) {
      throw Self.description.error("a fingerprint has hexadecimal digits; give the first 16 of them, or more")
    }
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: true, context)
    var daemon = try RunningDaemon(store, context)
    let network = try JoinedNetwork(joining: address, access)
    try network.addLibrary(&daemon)
    do {
      let roots = try network.announcedRoots(daemon)
      try network.pin(try chosen(among: roots, context))
    } catch {
      try? network.removeLibrary(&daemon, force: true)
      throw error
    }
    let outcomes = try network.update(&daemon)
    DesktopEntries.refresh(access, context)
    if json {
      context.console.print(json: outcomes)
      return outcomes.contains { $0.result == .failed } ? .failed : .ok
    }
    context.console.say("This machine has joined \(address.text.sanitized).")
    return outcomes.tell(context.console) ? .ok : .failed
  }

  /// The roots that are to be trusted.
  private func chosen(among roots: [Certificate], _ context: Context) throws -> [Certificate] {
    if let root {
      let found = roots.filter { $0.fingerprintText.hasPrefix(root) }
      guard !found.isEmpty else {
        throw CommandFailure(.failed, "the network has no root of that fingerprint; nothing was changed")
      }
      return found
    }
    let words = roots.map { "  \($0.name.sanitized)  \($0.fingerprintText)" }
    guard context.hasTerminal else {
      throw CommandFailure(
        .failed, "nothing was changed; compare the network's roots, and give one with '--root FINGERPRINT'",
        lines: words)
    }
    context.console.note("apps of this network are trusted if they are signed under:", words)
    try context.requireAgreement("Compare that with what its administrator says. Go on?")
    return roots
  }
}
