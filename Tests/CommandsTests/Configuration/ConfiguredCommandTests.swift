// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What is configured is what commands do.
@Suite struct ConfiguredCommandTests {
  private let shell: Shell

  init() throws {
    shell = try Shell()
    for folder in ["etc", "etc/insula", "stores"] { try shell.temporary.makeDirectory(folder, mode: 0o755) }
  }

  private func configure(_ text: String) throws {
    try shell.temporary.write(text, to: "etc/insula/insula.conf")
  }

  @Test(.enabled(if: Program.isRoot, "a store of the machine's is root's"))
  func rootsStoreIsWhereRootSays() throws {
    let store = shell.temporary.appending("stores/one")
    try configure("[machine]\nstore = \(store)\nadmin-group = nogroup\n")
    let made = shell.run("init")
    #expect(
      made.code == .ok && made.output.contains("\(store) (for all users, administered by the group nogroup)"))
    #expect(
      shell.run("user", "list").output == "There are no homes yet; 'insula user add NAME' creates one.\n")
    #expect(shell.run("check").output == "The store \(store) is in order.\n")
    // What is said on the command line comes first.
    #expect(shell.run("check", "elsewhere").code == .noStore)
    try configure("[machine]\nstore = \(store)2\nadmin-group = no-such-group\n")
    let refused = shell.run("init")
    #expect(refused.code == .usage && refused.errors.contains("insula.conf:3 names"), "\(refused.errors)")
    #expect(shell.run("init", "--admin-group", "nogroup").code == .ok)
  }

  /// Who has no store means the machine's, wherever root has put it.
  @Test func usersFindTheMachinesStore() throws {
    let store = shell.temporary.appending("stores/all")
    try configure("[machine]\nstore = \(store)\n")
    #expect(shell.run(["init", store]).code == .ok)
    let result = shell.run(["status"], as: 501)
    #expect(result.errors.contains("the machine's store \(store) is not mounted"), "\(result.errors)")
  }

  @Test func identityToSignWith() throws {
    try configure("[sign]\nidentity = Bert\n")
    for name in ["Anna", "Bert"] { #expect(shell.run("identity", "new", name).code == .ok) }
    #expect(shell.run("new-app", "Note").code == .ok)
    #expect(shell.run("sign", "Note.app").output.contains("as 'Bert'"))
    #expect(shell.run("sign", "Note.app", "--force", "--identity", "Anna").output.contains("as 'Anna'"))
    try configure("")
    #expect(shell.run("sign", "Note.app", "--force").errors.contains("several identities"))
  }

  /// A real mount of an ordinary user's, whose file says how.
  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func mountOptionsCount() throws {
    let mounted = try MountedStore(asNobody: true)
    let home = try mounted.temporary.makeDirectory("home", mode: 0o755)
    for folder in ["home/.config", "home/.config/insula"] {
      try mounted.temporary.makeDirectory(folder, mode: 0o755)
    }
    func configure(_ options: String) throws {
      try mounted.temporary.write(
        "[user]\nmount-point = \(mounted.point)\n[mount]\noptions = \(options)\n",
        to: "home/.config/insula/insula.conf")
    }
    #expect(try Program.run(["chown", "-R", "nobody", home]).status == 0)
    try configure("noatime,ro,cache=3")
    func options() throws -> [String] {
      let entry = try MountTable.current().top(at: mounted.point)
      return entry.map { ($0.options + "," + $0.superOptions).split(separator: ",").map(String.init) } ?? []
    }
    try mounted.mount()
    #expect(try options().contains("noatime") && options().contains("ro"))
    #expect(try mounted.unmount().status == 0)
    // The last word on a matter counts, and that is the command line's.
    try mounted.mount(options: "rw")
    #expect(try options().contains("noatime") && options().contains("rw"))
    #expect(try mounted.run("unmount").status == 0)
    try configure("nonsense")
    let refused = try mounted.run("mount", mounted.store, mounted.point)
    #expect(refused.status == 1 && refused.errors.contains("insula.conf:4: options: unknown mount option"))
    #expect(try options().isEmpty)
  }

  /// Each key is in the manual, the help and the completions, since all are made of one table.
  @Test func everyKeyIsExplained() throws {
    let page = shell.run("help", "--man", "insula.conf.5").output
    let topic = shell.run("help", "configuration").output
    for key in ConfigurationKey.all {
      #expect(
        page.contains("\(Roff.literal(key.name)) =")
          && topic.contains("[\(key.section.rawValue)] \(key.name)"))
      #expect(Completion(["config", ""]).candidates.map(\.word).contains(key.path))
      #expect(shell.run("config", key.path).code == .ok)
      // What is built in is right by the key's own rules.
      let value = shell.run("config", key.path).output.dropLast()
      #expect(value.isEmpty || key.kind.refusal(of: String(value)) == nil)
    }
    let example = ManualText.configurationExample.joined(separator: "\n")
    let parts = example.components(separatedBy: "# ~/")
    #expect(ConfigurationText(Array(parts[0].utf8), isMachines: true).problems == [])
    #expect(ConfigurationText(Array("# ~/\(parts[1])".utf8), isMachines: false).problems == [])
  }
}
