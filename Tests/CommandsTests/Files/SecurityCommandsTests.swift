// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula acl`, `flags` and `ls` on a real mount, by several users.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct SecurityCommandsTests {
  private let mounted: MountedStore

  init() throws {
    mounted = try MountedStore()
  }

  private func path(_ name: String) -> String { mounted.path("Users/Shared/\(name)") }

  /// Runs a shell's line as root or someone else; `$d` is the directory of the test.
  private func sh(_ line: String, as account: Account? = nil) throws -> ProgramResult {
    let become =
      account.map { ["setpriv", "--reuid=\($0.uid)", "--regid=\($0.gid)", "--clear-groups"] } ?? []
    let tools = URL(fileURLWithPath: Program.insula).deletingLastPathComponent().path
    return try Program.run(
      become + ["sh", "-c", line],
      environment: ["PATH": "\(tools):/usr/bin:/bin", "d": path("d"), "LC_ALL": "C"])
  }

  /// A mount with a directory of someone's own.
  private func start(_ owner: Account) throws {
    try mounted.mount()
    let made = try sh("mkdir $d; echo text > $d/file; chown -R \(owner.uid):\(owner.gid) $d; chmod 755 $d")
    #expect(made.status == 0, "\(made.errors)")
  }

  @Test func aclsAreSetByTheOwnerAndHold() throws {
    let owner = try TemporaryAccount()
    let other = try TemporaryAccount()
    try start(owner.account)
    let set = try sh(
      "chmod 600 $d/file; insula acl +a 'user:\(other.account.name) allow read' $d/file", as: owner.account)
    #expect(set.status == 0, "\(set.errors)")
    #expect(
      try sh("insula acl $d/file", as: other.account).output == " 0: user:\(other.account.name) allow read\n")
    #expect(try sh("cat $d/file", as: other.account).output == "text\n")
    #expect(
      try sh("insula ls -le $d/file", as: other.account).output.hasPrefix(
        "-rw-------+ 1 \(owner.account.name)  "))
    let refused = try sh("insula acl -N $d/file", as: other.account)
    #expect(refused.status == 1)
    #expect(refused.errors == "insula: \(path("d"))/file: Operation not permitted\n")
    #expect(try sh("insula acl -a# 0 $d/file", as: owner.account).status == 0)
    #expect(try sh("insula acl $d/file", as: owner.account).output == "\(path("d"))/file: an empty ACL\n")
    #expect(try sh("cat $d/file", as: other.account).ending == .failed)
    #expect(try sh("insula acl -N $d/file && insula acl $d/file").output == "\(path("d"))/file: no ACL\n")
  }

  @Test func whatIsInheritedIsShownSo() throws {
    let owner = try TemporaryAccount()
    try start(owner.account)
    let made = try sh(
      "insula acl +a 'everyone allow read,file_inherit,directory_inherit' $d; "
        + "mkdir $d/sub; touch $d/sub/new; insula acl -R $d", as: owner.account)
    #expect(
      made.output == """
        \(path("d")):
         0: group:everyone allow list,file_inherit,directory_inherit
        \(path("d"))/sub:
         0: group:everyone inherited allow list,file_inherit,directory_inherit
        \(path("d"))/sub/new:
         0: group:everyone inherited allow read

        """, "\(made.errors)")
    #expect(
      try sh("insula acl -R -I $d && insula acl -R $d", as: owner.account).output.contains("/sub") == false)
  }

  @Test func flagsHoldUntilTheyAreCleared() throws {
    let owner = try TemporaryAccount()
    let other = try TemporaryAccount()
    try start(owner.account)
    #expect(try sh("insula flags uchg $d/file && insula flags $d/file", as: owner.account).output == "uchg\n")
    #expect(try sh("echo more >> $d/file").ending == .seriousTrouble)
    #expect(try sh("insula ls -lO $d/file").output.contains("  uchg 5 "))
    let refused = try sh("insula flags nouchg $d/file", as: other.account)
    #expect(refused.status == 1 && refused.errors.hasSuffix(": Operation not permitted\n"))
    #expect(try sh("insula flags schg $d/file", as: owner.account).status == 1)
    #expect(try sh("insula flags $d/file -uchg && echo more >> $d/file", as: owner.account).status == 0)
    #expect(
      try sh("ln -s file $d/link; insula flags --no-follow hidden $d/link; insula flags --no-follow $d/link")
        .output == "hidden\n")
    #expect(try sh("insula flags $d/link").output == "-\n")
  }

  @Test func aliasesAreNoAttributesOfTheFile() throws {
    let owner = try TemporaryAccount()
    try start(owner.account)
    #expect(try sh("insula acl +a 'everyone deny delete' $d/file; insula flags hidden $d/file").status == 0)
    #expect(try sh("getfattr $d/file").output.contains("user.com.apple.system.Security"))
    #expect(try sh("insula ls -l@ $d/file").output.hasPrefix("-rw-r--r--+"))
    #expect(
      try sh("setfattr -n user.note -v 1 $d/file; insula ls -l@ $d/file").output.hasSuffix(
        " \(path("d"))/file\n\tuser.note\t   1 \n"))
    let link = try sh(
      "ln -s file $d/link; insula acl +a 'everyone deny read' $d/nowhere $d/link; insula acl $d/link")
    #expect(link.errors.contains("/nowhere: No such file or directory"))
    #expect(link.output == " 0: group:everyone deny read,delete\n")
  }

  @Test func rootRepairsADamagedACL() throws {
    let owner = try TemporaryAccount()
    try start(owner.account)
    try sh("insula acl +a 'everyone allow read' $d/file").expectSuccess()
    try mounted.run("unmount", mounted.point).expectSuccess()
    let backing = mounted.backing("Users/Shared/d/file")
    for repair in ["insula acl -N $d/file", "echo 'everyone allow read' | insula acl -E $d/file"] {
      try Program.run(["setfattr", "-n", "trusted.insula.acl", "-v", "nonsense", backing]).expectSuccess()
      try mounted.mount()
      #expect(try sh("cat $d/file", as: owner.account).ending == .failed)
      let shown = try sh("insula acl $d/file")
      #expect(shown.status == 1 && shown.errors.contains("its ACL is damaged"), "\(shown)")
      #expect(try sh("insula acl +a 'everyone deny write' $d/file").status == 1)
      try sh(repair).expectSuccess()
      #expect(try sh("cat $d/file", as: owner.account).output == "text\n")
      try mounted.run("unmount", mounted.point).expectSuccess()
    }
  }
}

extension ProgramResult {
  /// What a test needs before it can test anything.
  fileprivate func expectSuccess(_ location: SourceLocation = #_sourceLocation) {
    #expect(status == 0, "\(output)\(errors)", sourceLocation: location)
  }
}
