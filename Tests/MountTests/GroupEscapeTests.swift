// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Whether ordinary users may map more groups than their own into a user namespace, and so give groups up.
private let groupsCanBeGivenUp: Bool = {
  let tools = "command -v newuidmap newgidmap unshare setpriv"
  return MountedStore.isPossible && (try? Program.run(["sh", "-c", tools]).status) == 0
}()

/// A process that gives up a group in a user namespace does not pass by what is denied to that group.
@Suite(
  .enabled(if: groupsCanBeGivenUp, "it takes root, /dev/fuse, newuidmap and newgidmap"))
struct GroupEscapeTests {
  /// Ways for an ordinary user to be rid of a group.
  private static let ways = [
    "unshare --map-root-user --map-auto setpriv --clear-groups",
    "unshare --map-current-user --map-auto --keep-caps setpriv --clear-groups",
    // Nobody can give up groups in the inner namespace, and its only group is the user's own.
    "unshare --map-root-user --map-auto setpriv --clear-groups unshare --map-root-user",
    "unshare --map-root-user --map-auto setpriv --clear-groups "
      + "unshare --map-root-user unshare --map-root-user",
    "unshare --map-root-user --map-auto --pid --fork --mount-proc setpriv --clear-groups",
    "unshare --map-root-user --map-auto setpriv --regid=7 --clear-groups",
    "unshare --map-root-user --map-auto setpriv --groups=9",
  ]

  private func run(_ line: String, as account: TemporaryAccount, _ way: String = "") throws -> ProgramResult {
    let become = ["setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)"]
    let words = way.split(separator: " ").map(String.init)
    return try Program.run(become + ["--init-groups"] + words + ["timeout", "60", "sh", "-c", line])
  }

  /// Each line is refused to a member of the group.
  private static let attempts: [(line: String, ending: Ending)] = [
    ("cat list", .failed), ("cat mode", .failed), ("ls listed", .seriousTrouble),
    (": > listed/new", .seriousTrouble), ("mkdir listed/new", .failed), ("cat searched/file", .failed),
    ("rm -f kept/file", .failed), ("mv kept/file moved", .failed), ("echo x >> written", .seriousTrouble),
    ("getfattr -n user.x attributes", .failed), ("./program", .notExecutable),
  ]

  private func prepare(_ place: String, _ team: String) throws {
    let deny = "'group:\(team) deny"
    let script = """
      set -e; umask 022; mkdir -m 777 '\(place)'; cd '\(place)'
      insula() { '\(Program.insula)' "$@"; }
      for name in list mode written attributes; do echo told > $name; done
      mkdir -m 777 listed searched kept; echo told > searched/file; : > kept/file
      printf '#!/bin/sh\\n' > program; chmod 755 program; \
      chmod 666 written; setfattr -n user.x -v y attributes
      chgrp \(team) mode; chmod 604 mode
      insula acl +a \(deny) read' list
      insula acl +a \(deny) list,add_file,add_subdirectory' listed
      insula acl +a \(deny) search' searched
      insula acl +a \(deny) delete_child' kept
      insula acl +a \(deny) delete' kept/file
      insula acl +a \(deny) write,append' written
      insula acl +a \(deny) readextattr' attributes
      insula acl +a \(deny) execute' program
      """
    let result = try Program.run(["sh", "-c", script])
    try #require(result.status == 0, "\(result.errors)")
  }

  /// To tell thousands of groups takes the kernel long, so nobody has them told again and again.
  @Test func thousandsOfGroupsTakeNobodysTime() throws {
    let team = try TemporaryGroup()
    let account = try TemporaryAccount()
    let mounted = try MountedStore.mounted()
    let daemon = try #require(try mounted.daemon())
    let place = mounted.path("Users/Shared/place")
    let making = "mkdir '\(place)' && chgrp \(team.name) '\(place)' && chmod 770 '\(place)'"
    let made = try Program.run(["sh", "-c", making])
    try #require(made.status == 0, "\(made.errors)")
    let program = """
      import os
      os.setgroups(list(range(1, 60000)))
      print(sum(os.access('\(place)', os.R_OK) for _ in range(300)))
      """
    let before = try #require(processorSeconds(of: daemon))
    let result = try run("python3 -c \"\(program)\"", as: account, "unshare --map-root-user --map-auto")
    #expect(result.output == "0\n", "\(result.errors)")
    #expect(try #require(processorSeconds(of: daemon)) - before < 1)
  }

  @Test func denialsHoldForThoseWhoGiveTheirGroupsUp() throws {
    let team = try TemporaryGroup()
    let member = try TemporaryAccount(groups: [team])
    let stranger = try TemporaryAccount()
    let mounted = try MountedStore.mounted()
    let place = mounted.path("Users/Shared/place")
    try prepare(place, team.name)
    for (line, ending) in Self.attempts {
      for way in [""] + Self.ways {
        let result = try run("cd '\(place)' && \(line)", as: member, way)
        #expect(result.ending == ending, "\(line): \(way): \(result)")
      }
    }
    for (line, _) in Self.attempts {
      let result = try run("cd '\(place)' && \(line)", as: stranger)
      #expect(result.status == 0, "\(line): \(result.errors)")
      _ = try run("cd '\(place)'; rm -rf listed/new; [ -e kept/file ] || mv moved kept/file", as: stranger)
      _ = try run("cd '\(place)'; [ -e kept/file ] || touch kept/file", as: stranger)
    }
    // What the filesystem below makes of it.
    let plain = try TemporaryDirectory(mode: 0o755)
    let file = try plain.write("told", to: "mode")
    #expect(try Program.run(["sh", "-c", "chgrp \(team.name) '\(file)'; chmod 604 '\(file)'"]).status == 0)
    #expect(try run("cat '\(file)'", as: member).ending == .failed)
    for way in Self.ways { #expect(try run("cat '\(file)'", as: member, way).status == 0, "\(way)") }
  }

  /// Who has a group has it in a namespace too.
  @Test func permitsHoldInNamespaces() throws {
    let team = try TemporaryGroup()
    let member = try TemporaryAccount(groups: [team])
    let mounted = try MountedStore.mounted()
    let place = mounted.path("Users/Shared/")
    let script = """
      cd '\(place)'; echo told > list; echo told > mode; \
      chmod 600 list; chgrp \(team.name) mode; chmod 640 mode
      '\(Program.insula)' acl +a 'group:\(team.name) allow read' list
      """
    #expect(try Program.run(["sh", "-c", script]).status == 0)
    for line in ["cat list", "cat mode"] {
      for way in ["", "unshare --map-root-user", "unshare --map-root-user --map-auto"] {
        #expect(try run("cd '\(place)' && \(line)", as: member, way).output == "told\n", "\(line): \(way)")
      }
      for way in Self.ways { #expect(try run("cd '\(place)' && \(line)", as: member, way).ending == .failed) }
    }
  }

  /// In a mount of one's own: what one denies to one's own group.
  @Test func denialsHoldWithoutRoot() throws {
    let team = try TemporaryGroup()
    let member = try TemporaryAccount(groups: [team])
    let mounted = try MountedStore.mounted(owner: member.account)
    let file = mounted.path("Users/Shared/file")
    let made = try run(
      "echo told > '\(file)'; cat '\(file)'; "
        + "'\(Program.insula)' acl +a 'group:\(team.name) deny read' '\(file)'",
      as: member)
    #expect(made.status == 0 && made.output == "told\n", "\(made.errors)")
    #expect(try run("cat '\(file)'", as: member).ending == .failed)
    for way in Self.ways { #expect(try run("cat '\(file)'", as: member, way).ending == .failed, "\(way)") }
  }

  /// An app that is started without the group does not see more than one that has it.
  @Test func denialsHoldForApps() throws {
    let fixture = try RunFixture()
    let file = fixture.container + "/Data/Documents/file"
    let team = 54499
    #expect(try fixture.inside("echo told > Documents/file").status == 0)
    let made = try fixture.shell("'\(Program.insula)' acl +a 'group:\(team) deny read' '\(file)'")
    #expect(made.status == 0, "\(made.errors)")
    let become = [
      "setpriv", "--reuid=\(fixture.user.uid)", "--regid=\(fixture.user.gid)", "--groups=\(team)",
    ]
    func app(_ way: String, _ line: String) throws -> ProgramResult {
      let words = way.split(separator: " ").map(String.init)
      let run = [
        "timeout", "60", Program.insula, "run", "--store", fixture.mounted.point, RunFixture.identifier, "--",
        "sh",
        "-c", line,
      ]
      return try Program.run(
        become + words + run,
        environment: ["HOME": "/nonexistent", "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": ""])
    }
    #expect(try app("", "echo runs; cat Documents/file").output == "runs\n")
    for way in Self.ways { #expect(try app(way, "cat Documents/file").output.isEmpty, "\(way)") }
    // It could from inside no more than its user.
    for way in Self.ways { #expect(try app("", "\(way) cat Documents/file").output.isEmpty, "\(way)") }
  }
}
