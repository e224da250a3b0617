// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What people can do in the places of an app, in the tree as a whole.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct ContainerTests {
  /// Runs a line where nothing stands against it, and then where something does.
  private func expect(
    _ errno: Errno, _ line: String, elsewhere: String, here: String, as person: Person,
    _ fixture: PlaceFixture
  ) throws {
    let prepare = """
      away=$home/away; thing=$away/thing; rm -rf $away; \
      mkdir $away; echo x >$thing; echo x >$away/twin; cd $away
      metadata=$(echo "$container"/.*.plist); link=$data/Editor.app
      """
    let possible = try fixture.run("\(prepare); \(elsewhere); \(line)", as: person)
    #expect(possible.status == 0, "\(person), elsewhere: \(line): \(possible.errors)")
    let refused = try fixture.run("\(prepare); \(here); \(line)", as: person)
    #expect(
      refused.isRefusal && refused.errors.contains(errno.message),
      "\(person), \(here): \(line): \(refused)")
  }

  @Test(arguments: [false, true]) func appsPlacesAreTheirUsersToFill(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    for person in fixture.people {
      for place in ContainerRows.open {
        for line in ContainerRows.work {
          let result = try fixture.run("at=\"\(place)\"; \(line)", as: person)
          #expect(result.status == 0, "\(person), \(place): \(line): \(result.errors)")
        }
        let left = try fixture.perform("at=\"\(place)\"; ls \"$at\"", as: person)
        #expect(!left.contains("new") && !left.contains("x\n"), "\(place): \(left)")
      }
    }
  }

  @Test(arguments: [false, true]) func containersConsistOfWhatTheyBeginWith(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    let container = try #require(fixture.cast.words["container"])
    let before = try fixture.fingerprint(container, as: .owner)
    for person in fixture.people {
      for place in ContainerRows.closed {
        for line in ContainerRows.comings {
          try expect(
            .EPERM, line, elsewhere: "at=$away/at; mkdir $at", here: "at=\"\(place)\"", as: person, fixture)
        }
      }
      for fixed in ContainerRows.fixed {
        for line in ContainerRows.goings {
          let isDirectory = !["$metadata", "$link"].contains(fixed)
          let make = isDirectory ? "rm $away/twin; mkdir $away/twin $fixed" : "echo x >$fixed"
          let here = isDirectory ? "rm $away/twin; mkdir $away/twin; " : ""
          try expect(
            .EPERM, line, elsewhere: "fixed=$away/fixed; \(make)", here: "\(here)fixed=\"\(fixed)\"",
            as: person, fixture)
        }
      }
      for line in ContainerRows.metadataChanges {
        try expect(
          .EPERM, line, elsewhere: "file=$away/file; cp \"$metadata\" $file", here: "file=\"$metadata\"",
          as: person, fixture)
      }
      #expect(try fixture.perform("cat $container/.*.plist", as: person).contains(PlaceFixture.app))
      #expect(
        try fixture.perform("readlink $data/Editor.app", as: person).hasSuffix("Applications/Editor.app\n"))
    }
    #expect(try fixture.fingerprint(container, as: .owner) == before)
  }

  @Test(arguments: [false, true]) func appsThemselvesAreReadAndRun(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    let bundle = try #require(fixture.cast.words["bundle"])
    let before = try fixture.fingerprint(bundle, as: .owner)
    for person in fixture.people {
      for line in ContainerRows.bundleUses {
        let result = try fixture.run("at=$bundle/Contents; \(line)", as: person)
        #expect(result.status == 0, "\(person): \(line): \(result.errors)")
      }
      for line in ContainerRows.bundleChanges {
        try expect(
          .EROFS, line, elsewhere: "cp -a $bundle/Contents $away/at; at=$away/at",
          here: "at=$bundle/Contents", as: person, fixture)
      }
    }
    #expect(try fixture.fingerprint(bundle, as: .owner) == before)
  }
}
