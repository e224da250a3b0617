// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula share`: the servers themselves read what it prints.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ShareTests {
  /// A server's configuration as the server understands it.
  private func read(_ fragment: String, by command: [String], _ fixture: RunFixture) throws -> ProgramResult {
    let file = try fixture.mounted.temporary.write(fragment, to: "fragment")
    return try Program.run(command.map { $0 == "FILE" ? file : $0 })
  }

  private static func has(_ program: String) -> Bool {
    ["/usr/bin/", "/usr/sbin/"].contains { FileManager.default.isExecutableFile(atPath: $0 + program) }
  }

  @Test(.enabled(if: has("testparm"), "needs testparm (package samba-common-bin)"))
  func sambaUnderstandsIt() throws {
    let fixture = try RunFixture()
    try fixture.install(
      "Pages", options: ["--identifier", "org.example.pages"],
      info: "<key>UIFileSharingEnabled</key><true/>")
    let home = "\(fixture.mounted.point)/Users/\(fixture.user.name)"
    for (place, writes) in [("Public", true), ("Sites", false)] {
      let printed = try fixture.shell("insula share \(place) --samba")
      let read = try read(printed.output, by: ["/usr/bin/testparm", "-s", "FILE"], fixture)
      #expect(read.status == 0, "\(read.errors)")
      #expect(read.output.contains("[\(fixture.user.name) \(place)]"), "\(read.output)")
      #expect(read.output.contains("path = \(home)/\(place)\n"), "\(read.output)")
      #expect(read.output.contains("read only = No") == writes, "\(read.output)")
      #expect(!read.output.contains("guest ok = Yes"), "\(read.output)")
    }
    // What is called like a section of the server's own is none, and what is hidden stays so.
    let files = try fixture.shell(
      """
      cd '\(home)'; mkdir global homes 'print$' Covered; "$INSULA" flags hidden Covered
      insula share Files --samba
      """)
    #expect(files.output.contains("[\(fixture.user.name) Files global]"), "\(files.output)")
    let read = try read(files.output, by: ["/usr/bin/testparm", "-s", "FILE"], fixture)
    #expect(read.output.contains(" Files Pages]"), "\(read.output)")
    #expect(read.output.contains(" Files Documents]"), "\(read.output)")
    #expect(!read.output.contains("Notes") && !read.output.contains("Library]"), "\(read.output)")
    #expect(!read.output.contains("Files Covered"), "\(read.output)")
    let sections = read.output.components(separatedBy: "\n[").count - 2
    #expect(
      read.output.components(separatedBy: "valid users = \(fixture.user.name)\n").count - 1 == sections,
      "\(read.output)")
  }

  @Test(.enabled(if: has("sshd"), "needs sshd (package openssh-server)"))
  func sshdUnderstandsIt() throws {
    let fixture = try RunFixture()
    let printed = try fixture.shell("insula share Public --sftp --as nobody")
    let key = fixture.mounted.temporary.appending("key")
    try #require(try Program.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key]).status == 0)
    // It wants a directory in /run, which is the machine's.
    let script = "mount -t tmpfs none /run && mkdir /run/sshd && exec /usr/sbin/sshd -T \"$@\""
    let words = ["-h", key, "-f", "FILE", "-C", "user=nobody,host=h,addr=127.0.0.1"]
    let command = ["unshare", "-m", "sh", "-c", script, "sh"] + words
    let understood = try read(printed.output, by: command, fixture)
    #expect(understood.status == 0, "\(understood.errors)")
    #expect(understood.output.contains("chrootdirectory \(fixture.mounted.point)\n"), "\(understood.output)")
    #expect(
      understood.output.contains("forcecommand internal-sftp -d /Users/\(fixture.user.name)/Public\n"),
      "\(understood.output)")
    let refused = try fixture.shell("insula share Files --sftp --as nobody")
    #expect(refused.ending == .failed && refused.errors.contains("alone"), "\(refused)")
  }

  /// What a name has must not become a word of the configuration.
  @Test func namesAreNoConfiguration() throws {
    let fixture = try RunFixture()
    let home = "\(fixture.mounted.point)/Users/\(fixture.user.name)"
    for name in ["a\n[global]", "%u", "a\\", "a "] {
      try FileManager.default.createDirectory(atPath: "\(home)/\(name)", withIntermediateDirectories: false)
      let printed = try fixture.shell("insula share Files --samba")
      #expect(printed.ending == .failed && printed.errors.contains("can't be shared"), "\(name): \(printed)")
      try FileManager.default.removeItem(atPath: "\(home)/\(name)")
    }
    #expect(try fixture.shell("insula share Files --samba").status == 0)
  }
}
