// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Whose files count, and what does not count although it lies there.
@Suite(.enabled(if: Program.isRoot, "files of several owners need root"))
struct ConfigurationFileTests {
  private static let anna: UInt32 = 501
  private static let bert: UInt32 = 502

  private let shell: Shell
  private var machines: String { shell.temporary.appending("etc/insula/insula.conf") }
  private var own: String { shell.temporary.appending(".config/insula/insula.conf") }

  init() throws {
    shell = try Shell()
    for folder in ["etc", "etc/insula", ".config", ".config/insula"] {
      try shell.temporary.makeDirectory(folder, mode: 0o755)
    }
    #expect(chown(shell.temporary.appending(".config/insula"), Self.anna, Self.anna) == 0)
  }

  private func write(_ text: String, _ path: String, owner: UInt32 = 0, mode: UInt32 = 0o644) throws {
    try text.write(toFile: path, atomically: false, encoding: .utf8)
    #expect(chown(path, owner, owner) == 0 && chmod(path, mode) == 0)
  }

  private func value(_ key: String, as uid: UInt32 = Self.anna) -> Shell.Result {
    shell.run(["config", key], as: uid)
  }

  @Test func usersFileComesBeforeTheMachines() throws {
    try write("[user]\nstore = /machine\nmount-point = ~/there\n", machines)
    #expect(value("user.store").output == "\(shell.temporary.path)/data/insula\n")
    try write("[user]\nmount-point = /own\n[mount]\noptions = ro\n", own, owner: Self.anna)
    #expect(value("user.mount-point").output == "/own\n")
    #expect(value("mount.options").output == "ro\n")
    let table = shell.run(["config"], as: Self.anna)
    #expect(table.code == .ok && table.errors.isEmpty)
    let rows = table.output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
    #expect(rows.contains("user.store \(shell.temporary.path)/data/insula the variable XDG_DATA_HOME"))
    #expect(rows.contains("user.mount-point /own \(own):2"))
    #expect(rows.contains("machine.store /var/lib/insula built in"))
    #expect(rows.count == ConfigurationKey.all.count + 1)
    try write("", own, owner: Self.anna)
    #expect(value("user.mount-point").output == "\(shell.temporary.path)/there\n")
  }

  /// What root does is for all, whoever wrote the file in what is said to be root's home.
  @Test func rootGoesByTheMachinesFileAlone() throws {
    try write("[mount]\noptions = nosuid\n[machine]\nstore = /srv/x\n", machines)
    try write("[mount]\noptions = suid\n", own)
    #expect(value("mount.options", as: 0).output == "nosuid\n")
    #expect(value("machine.store", as: 0).output == "/srv/x\n")
    try write("nonsense", own)
    #expect(shell.run(["config"], as: 0).code == .ok)
    #expect(!shell.run(["config"], as: 0).output.contains("user."))
  }

  @Test func whatOthersCouldHaveWrittenDoesNotCount() throws {
    let text = "[mount]\noptions = ro\n"
    let cases: [(String, UInt32, UInt32, UInt32, Bool)] = [
      (own, Self.anna, 0o600, Self.anna, true), (own, 0, 0o644, Self.anna, true),
      (own, Self.bert, 0o644, Self.anna, false), (own, Self.anna, 0o664, Self.anna, false),
      (own, Self.anna, 0o602, Self.anna, false), (own, Self.anna, 0o600, Self.bert, false),
      (machines, 0, 0o644, 0, true), (machines, 0, 0o644, Self.anna, true),
      (machines, Self.anna, 0o644, Self.anna, false), (machines, Self.anna, 0o644, 0, false),
      (machines, 0, 0o664, 0, false), (machines, 0, 0o646, Self.anna, false),
    ]
    for (path, owner, mode, reader, counts) in cases {
      try write(text, path, owner: owner, mode: mode)
      let result = value("mount.options", as: reader)
      #expect((result.code == .ok) == counts, "\(path) of \(owner), \(mode), for \(reader): \(result.errors)")
      #expect(result.output == (counts ? "ro\n" : "\n"))
      if !counts {
        #expect(result.errors.contains("does not count") && result.errors.contains(path))
        // No command goes on without what its user meant to say.
        let other = shell.run(["apps", "--store", shell.temporary.appending("none")], as: reader)
        #expect(other.code == .failed && other.errors.contains("does not count"))
      }
      try FileManager.default.removeItem(atPath: path)
    }
  }

  @Test func neitherDoesWhatLiesInADirectoryOfOthers() throws {
    for (path, reader) in [(own, Self.anna), (machines, 0)] {
      let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
      try write("[mount]\noptions = ro\n", path)
      for (owner, mode) in [(reader, 0o777), (reader, 0o775), (Self.bert, 0o755)] as [(UInt32, UInt32)] {
        #expect(chown(folder, owner, owner) == 0 && chmod(folder, mode) == 0)
        let result = value("mount.options", as: reader)
        #expect(result.code == .problemsFound && result.errors.contains("its directory"), "\(result.errors)")
      }
      #expect(chown(folder, reader, reader) == 0 && chmod(folder, 0o755) == 0)
      #expect(value("mount.options", as: reader).output == "ro\n")
    }
  }

  /// Whatever lies there, nothing waits for it.
  @Test(arguments: [0, 501] as [UInt32])
  func whatIsNoFileIsNamed(reader: UInt32) throws {
    let path = reader == 0 ? machines : own
    try write("[mount]\noptions = ro\n", shell.temporary.appending("there"), owner: reader)
    try write("[mount]\noptions = ro\n", shell.temporary.appending("berts"), owner: Self.bert)
    let target = shell.temporary.appending("pipe")
    #expect(mkfifo(target, 0o600) == 0)
    let makes: [(String, () -> Int32)] = [
      ("not a regular file", { mkfifo(path, 0o600) }), ("not a regular file", { mkdir(path, 0o700) }),
      ("not a regular file", { symlink(target, path) }), ("", { symlink("missing", path) }),
      ("", { symlink(shell.temporary.appending("there"), path) }),
      ("belongs to", { symlink(shell.temporary.appending("berts"), path) }),
      (
        "another user's link",
        {
          symlink(shell.temporary.appending("there"), path) == 0 ? lchown(path, Self.bert, Self.bert) : -1
        }
      ),
      ("can't be read: ", { symlink("insula.conf", path) }),
    ]
    for (fragment, make) in makes {
      #expect(make() == 0)
      let start = DispatchTime.now().uptimeNanoseconds
      let result = value("mount.options", as: reader)
      #expect(DispatchTime.now().uptimeNanoseconds - start < 5_000_000_000)
      #expect(fragment.isEmpty ? result.errors.isEmpty : result.errors.contains(fragment), "\(result.errors)")
      #expect(remove(path) == 0)
    }
  }

  /// Who acts is known by the kernel: what HOME says gives nobody another user's rights or files.
  @Test func whoeverReallyRunsItCounts() throws {
    try write("[mount]\noptions = ro\n", own, owner: Self.anna, mode: 0o644)
    #expect(chmod(shell.temporary.path, 0o755) == 0)
    let home = ["HOME": shell.temporary.path, "XDG_CONFIG_HOME": ""]
    let asNobody = try Program.runAsNobody([Program.insula, "config", "mount.options"], environment: home)
    #expect(asNobody.status == 8 && asNobody.output == "\n", "\(asNobody)")
    #expect(asNobody.errors.contains("its directory belongs to"))
    // Who can't enter a home has nothing in it.
    #expect(chmod(shell.temporary.path, 0o700) == 0)
    let outside = try Program.runAsNobody([Program.insula, "config", "mount.options"], environment: home)
    #expect(outside.status == 0 && outside.output == "\n" && outside.errors.isEmpty, "\(outside)")
    #expect(chmod(shell.temporary.path, 0o755) == 0)
    let asRoot = try Program.run([Program.insula, "config", "mount.options"], environment: home)
    #expect(asRoot.output != "ro\n" && !asRoot.errors.contains(own))
  }

  @Test func aDamagedFileStopsWhatGoesByIt() throws {
    try write("[user]\nstroe = /x\n[mount]\noptions = y\n[sign]\n", own, owner: Self.anna)
    for words in [["status"], ["apps"], ["mount"], ["unmount"], ["init"], ["doctor"], ["sign", "x"]] {
      let result = shell.run(words, as: Self.anna, machineStore: shell.temporary.appending("none"))
      #expect(result.code == .failed && result.output.isEmpty, "\(words)")
      #expect(result.errors.hasPrefix("insula: \(own):2: [user] has no key 'stroe'"), "\(result.errors)")
      #expect(result.errors.contains("\(own):4: options: unknown mount option 'y'"))
      #expect(result.errors.contains("'insula config --check'"))
    }
    for words in [["help"], ["version"], ["acl", "."], ["ls"], ["completions", "bash"]] {
      #expect(shell.run(words, as: Self.anna).code == .ok, "\(words)")
    }
    let shown = shell.run(["config"], as: Self.anna)
    #expect(shown.code == .problemsFound && shown.output.contains("user.store"))
  }

  @Test func filesAreCheckedBeforeTheyCount() throws {
    #expect(shell.run(["config", "--check"], as: Self.anna).output == "There is no configuration file.\n")
    try write("[mount]\noptions = ro\n", machines)
    try write("[mount]\noptions = rw\n", own, owner: Self.anna)
    let good = shell.run(["config", "--check"], as: Self.anna)
    #expect(good.code == .ok && good.output == "\(machines) and \(own): in order.\n")
    #expect(shell.run(["config", "--check", "-q"], as: Self.anna).output.isEmpty)
    try write("[mount]\nx\n[machine]\nstore = /x\n", shell.temporary.appending("new.conf"))
    let bad = shell.run(["config", "--check", "new.conf"], as: Self.anna)
    #expect(bad.code == .problemsFound && bad.errors.hasPrefix("insula: new.conf:2: 'x' is neither"))
    #expect(!bad.errors.contains(":4:"))
    let json = shell.run(["config", "--check", "new.conf", "--json"], as: Self.anna)
    let found = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [[String: Any]]
    #expect(found?.count == 1 && found?.first?["line"] as? Int == 2)
    try write("[machine]\nstore = /x\n", own, owner: Self.anna)
    let alone = shell.run(["config", "--check", own], as: Self.anna)
    #expect(alone.errors.contains("counts in the machine's file alone"))
    #expect(shell.run(["config", "--check", "nowhere"], as: Self.anna).code == .failed)
  }

  @Test func valuesAreForProgramsToo() throws {
    try write("[mount]\noptions = noatime,nosuid\n", machines)
    let all = shell.run(["config", "--json"], as: Self.anna)
    let rows = try JSONSerialization.jsonObject(with: Data(all.output.utf8)) as? [[String: Any]]
    let options = rows?.first { $0["key"] as? String == "mount.options" }
    #expect(options?["value"] as? String == "noatime,nosuid" && options?["line"] as? Int == 2)
    #expect(options?["file"] as? String == machines)
    let one = shell.run(["config", "mount.options", "--json"], as: Self.anna)
    let row = try JSONSerialization.jsonObject(with: Data(one.output.utf8)) as? [String: Any]
    #expect(row?["value"] as? String == "noatime,nosuid")
  }
}
