// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// ACLs and flags that stay with their files whatever happens to the mount, and accounts that change under
/// it.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct KeptACLTests {
  private let cast: Cast
  private let place: String

  init() throws {
    cast = try Cast()
    place = try cast.makePlace("kept")
  }

  private func expect(
    _ line: String, by person: Person, gives output: String? = nil, fails errno: Errno? = nil,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let result = try cast.run(line, as: person, in: place)
    let seen = "\(person.rawValue): \(line): \(result.status) \(result.output)\(result.errors)"
    #expect((result.status == 0) == (errno == nil), "\(seen)", sourceLocation: location)
    if let errno { #expect(result.errors.contains(errno.message), "\(seen)", sourceLocation: location) }
    if let output { #expect(result.output == output, "\(seen)", sourceLocation: location) }
  }

  /// Makes a tree with ACLs and flags, and tells what there is to be seen of it.
  private func makeTree() throws -> String {
    try expect(
      """
      mkdir -p d/s/t && echo text > d/s/f && ln d/s/f d/hard && mkfifo d/p && ln -s s d/l && chmod 600 d/s/f
      insula acl +a "user:$stranger allow read" d/s/f && insula acl +a "everyone deny delete" d/s/t
      insula acl +a "group:$team allow list,search,file_inherit,directory_inherit" d
      insula acl +a "user:$member allow write" d/p
      insula acl +a "everyone allow read" d/s && insula acl -a# 0 d/s
      insula flags hidden,uchg d/s/t && insula flags uappnd d/s/f && mkdir d/new && mv d/new d/s/renamed
      """, by: .owner)
    return try seen(place)
  }

  private func seen(_ place: String) throws -> String {
    let result = try cast.run(
      "cd '\(place)' && insula acl -R d && insula acl d/s d/p && insula flags -R d && insula ls -leOR d",
      as: .root, in: "/")
    #expect(result.status == 0, "\(result.errors)")
    return result.output
  }

  private func expectEnforced(_ location: SourceLocation = #_sourceLocation) throws {
    try expect("cat d/s/f d/hard", by: .stranger, gives: "text\ntext\n", location)
    try expect("cat d/s/f", by: .member, fails: .EACCES, location)
    try expect("rmdir d/s/t", by: .root, fails: .EPERM, location)
    try expect("echo new > d/hard", by: .owner, fails: .EPERM, location)
    try expect("ls d/s/renamed", by: .member, gives: "", location)
  }

  @Test func theyOutliveTheMountAndTheDaemon() throws {
    let before = try makeTree()
    try expectEnforced()
    let mounted = cast.mounted
    #expect(try mounted.run("unmount", mounted.point).status == 0)
    try mounted.mount()
    #expect(try seen(place) == before)
    try expectEnforced()
    try mounted.killDaemon()
    try unmount(mounted.point, lazily: true)
    try mounted.mount()
    #expect(try seen(place) == before)
    try expectEnforced()
    #expect(try mounted.run("unmount", mounted.point).status == 0)
    let checked = try mounted.run("check", mounted.store)
    #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
  }

  @Test func theyAreInACopyOfTheStore() throws {
    let before = try makeTree()
    let mounted = cast.mounted
    #expect(try mounted.run("unmount", mounted.point).status == 0)
    let copy = mounted.temporary.appending("copy")
    let copied = try Program.run(["rsync", "-aHX", mounted.store + "/", copy])
    #expect(copied.status == 0, "\(copied.errors)")
    let remounted = try mounted.run("mount", copy, mounted.point)
    #expect(remounted.status == 0, "\(remounted.errors)")
    #expect(try seen(place) == before)
    try expectEnforced()
  }

  @Test func damagedOnesRefuseAllButRoot() throws {
    let mounted = cast.mounted
    try expect(
      "echo text > f; mkdir d; echo text > d/f; for x in f d; "
        + "do insula acl +a 'everyone allow read' $x; done",
      by: .owner)
    #expect(try mounted.run("unmount", mounted.point).status == 0)
    for name in ["f", "d"] {
      let damaged = try Program.run([
        "setfattr", "-n", "trusted.insula.acl", "-v", "nonsense",
        mounted.backing("Users/Shared/kept/" + name),
      ])
      #expect(damaged.status == 0, "\(damaged.errors)")
    }
    let found = try mounted.run("check", mounted.store)
    #expect(found.ending == .problemsFound)
    for name in ["f", "d"] {
      #expect(found.output.contains("Users/Shared/kept/" + name), "\(found.output)\(found.errors)")
    }
    try mounted.mount()
    for person in Person.allCases where person != .root {
      for line in [
        "cat f", "echo new > f", "stat f", "ls d", "cat d/f", "touch d/g", "rm f", "getfattr -n user.note f",
      ] {
        try expect(line, by: person, fails: .EACCES)
      }
    }
    try expect("setfattr -x system.insula.acl f", by: .stranger, fails: .EPERM)
    try expect("cat f d/f && ls d && stat f", by: .root)
    try expect("getfattr -n system.insula.acl f", by: .root, fails: .EIO)
    try expect("insula acl -N f", by: .root)
    for person in Person.allCases { try expect("cat f", by: person, gives: "text\n") }
    // The owner can put right what is theirs.
    try expect("echo 'everyone allow list,search' | insula acl -E d", by: .owner)
    for person in Person.allCases { try expect("cat d/f", by: person, gives: "text\n") }
    #expect(try mounted.run("unmount", mounted.point).status == 0)
    let checked = try mounted.run("check", mounted.store)
    #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
  }

  /// Groups are those that a process has; who joins one has it in what they start from then on.
  @Test func newProcessesHaveNewGroups() throws {
    try expect(
      "echo text > f; chmod 600 f; insula acl +a \"group:$team allow read\" f; "
        + "mkdir d; chgrp $team d; chmod 770 d",
      by: .root)
    try expect("cat f", by: .stranger, fails: .EACCES)
    try expect("ls d", by: .stranger, fails: .EACCES)
    try cast.account(.stranger)?.join(cast.team)
    // What runs already stays what it is.
    try expect("cat f", by: .stranger, fails: .EACCES)
    cast.loginAgain(.stranger)
    try expect("cat f", by: .stranger, gives: "text\n")
    try expect("touch d/new && ls d", by: .stranger, gives: "new\n")
    try expect("chgrp $team d/new", by: .stranger)
    try expect("insula acl -N f; insula acl +a \"group:$team deny read\" f; chmod 644 f", by: .root)
    try expect("cat f", by: .stranger, fails: .EACCES)
    try expect("cat f", by: .owner, gives: "text\n")
  }
}
