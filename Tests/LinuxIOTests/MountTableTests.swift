// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Testing

@Suite struct MountTableTests {
  private let text = """
    22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
    40 22 0:35 / /insula rw,nosuid,nodev - fuse.insula /var/lib/insula rw,user_id=0,group_id=0,allow_other
    41 22 0:36 / /mnt/a\\040b\\134c rw shared:3 master:2 - tmpfs none rw,size=1k
    42 40 0:37 / /insula/Volumes/x rw - tmpfs none rw
    43 22 0:38 / /insula rw - fuse.insula /other rw

    this line is not one
    44 22 x:y / /bad rw - tmpfs none rw
    """

  @Test func understandsTheFields() throws {
    let entry = try #require(MountTable(parsing: text).entries.dropFirst().first)
    #expect(entry.id == 40)
    #expect(entry.device == DeviceNumber(major: 0, minor: 35))
    #expect(entry.type == "fuse.insula")
    #expect(entry.source == "/var/lib/insula")
    #expect(entry.superOptions.hasSuffix("allow_other"))
  }

  /// No name of a source says who serves it.
  @Test func serverIsAsTheKernelHasIt() {
    let servers = MountTable(
      parsing: """
        40 22 0:35 / /a rw - fuse.insula /user_id=7,user_id=8 rw,user_id=1001,group_id=0,allow_other
        41 22 0:36 / /b rw - fuse.insula user_id=7 rw,group_id=3,user_id=0
        42 22 0:37 / /c rw - tmpfs user_id=7 rw,size=1k
        43 22 0:38 / /d rw - fuse.insula /store rw,user_id=x
        44 22 0:39 / /e rw - fuse.insula /store rw,user_id=4294967296
        """
    ).entries.map(\.server)
    #expect(servers == [1001, 0, nil, nil, nil])
  }

  @Test func unescapes() {
    #expect(MountTable(parsing: text).entries[2].mountPoint == "/mnt/a b\\c")
  }

  @Test func leavesOutWhatMakesNoSense() {
    #expect(MountTable(parsing: text).entries.map(\.id) == [22, 40, 41, 42, 43])
    #expect(MountTable(parsing: "\\").entries.isEmpty)
    #expect(MountTable(parsing: "1 2 3:4 / /x rw - ").entries.isEmpty)
  }

  @Test func whatIsMountedInADirectoryIsFoundByItsFilesystem() throws {
    let here = MountTable(
      parsing: """
        22 1 8:1 / / rw - ext4 /dev/sda1 rw
        40 22 0:35 / /insula rw - fuse.insula /store rw
        41 40 0:36 / /insula/Users/anna/mnt rw - tmpfs none rw
        42 40 0:37 / /insula/Users/annalena/mnt rw - tmpfs none rw
        43 40 0:38 / /insula/Users/bob rw - tmpfs none rw
        """)
    let anna = try #require(here.place(of: "/insula/Users/anna"))
    #expect(anna == .init(device: DeviceNumber(major: 0, minor: 35), path: "/Users/anna"))
    #expect(here.mounts(in: anna) == ["/insula/Users/anna/mnt"])
    let whole = MountTable.Place(device: anna.device, path: "/Users/bob")
    #expect(here.mounts(in: whole) == ["/insula/Users/bob"], "on the directory itself")
    #expect(
      here.place(of: "/home/anna") == .init(device: DeviceNumber(major: 8, minor: 1), path: "/home/anna"))
    // Elsewhere the same filesystem, or a part of it, has another place.
    let elsewhere = MountTable(
      parsing: """
        50 1 0:35 / /other rw - fuse.insula /store rw
        51 50 0:40 / /other/Users/anna/a rw - tmpfs none rw
        52 1 0:35 /Users /people rw - fuse.insula /store rw
        53 52 0:41 / /people/anna/b rw - tmpfs none rw
        54 1 0:35 /Users/anna/Documents /documents rw - fuse.insula /store rw
        55 54 0:42 / /documents/c rw - tmpfs none rw
        56 1 0:43 / /tmp rw - tmpfs none rw
        """)
    #expect(elsewhere.mounts(in: anna) == ["/documents/c", "/other/Users/anna/a", "/people/anna/b"])
  }

  @Test func theLastMountIsOnTop() {
    let table = MountTable(parsing: text)
    #expect(table.top(at: "/insula")?.source == "/other")
    #expect(table.top(at: "/nowhere") == nil)
  }

  @Test func belowKnowsWhereNamesEnd() {
    let table = MountTable(parsing: text)
    #expect(table.below("/insula").map(\.id) == [42])
    #expect(table.below("/ins").isEmpty)
    #expect(table.below("/").count == 5)
  }

  @Test func theKernelsOwnTableHasARoot() throws {
    #expect(try MountTable.current().top(at: "/") != nil)
  }
}
