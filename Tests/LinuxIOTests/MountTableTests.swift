// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
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

  /// Two directories whose names look alike are two.
  @Test func mountPointsAreBytes() throws {
    let table = MountTable(
      parsing: """
        40 22 0:35 / /home/\u{e9} rw - fuse.insula /a rw
        41 22 0:36 / /home/e\u{301} rw - fuse.insula /b rw
        """)
    #expect(table.top(at: "/home/\u{e9}")?.id == 40 && table.top(at: "/home/e\u{301}")?.id == 41)
    let moved = table.mount(of: DeviceNumber(major: 0, minor: 35), madeAt: "/home/e\u{301}")
    #expect(moved?.id == 40)
  }

  /// A number that a mount had is the next filesystem's when the mount is gone.
  @Test func aNumberAloneIsNoMountOfOurs() {
    let table = MountTable(
      parsing: """
        40 22 0:35 / /point rw - tmpfs none rw
        41 22 0:35 / /moved rw - fuse.sshfs /store rw,user_id=7
        42 22 0:36 / /point2 rw - fuse.insula /store rw,user_id=8
        43 22 0:36 / /moved2 rw - fuse.insula /store rw,user_id=7
        """)
    let (gone, ours) = (DeviceNumber(major: 0, minor: 35), DeviceNumber(major: 0, minor: 36))
    #expect(table.mount(of: gone, madeAt: "/point") == nil)
    #expect(table.mount(of: ours, madeAt: "/point2")?.id == 42)
    #expect(table.mount(of: ours, madeAt: "/point2", servedBy: 8)?.id == 42)
    #expect(table.mount(of: ours, madeAt: "/point2", servedBy: 7)?.id == 43)
    #expect(table.mount(of: ours, madeAt: "/point2", servedBy: 9) == nil)
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
    let own = """
      22 1 8:1 / / rw - ext4 /dev/sda1 rw
      44 41 0:39 / /insula/Users/anna/mnt/deeper rw - tmpfs none rw
      40 22 0:35 / /insula rw - fuse.insula /store rw
      41 40 0:36 / /insula/Users/anna/mnt rw - tmpfs none rw
      42 40 0:37 / /insula/Users/annalena/mnt rw - tmpfs none rw
      43 40 0:38 / /insula/Users/bob rw - tmpfs none rw
      """
    let here = MountTable(parsing: own)
    let anna = try #require(here.place(of: "/insula/Users/anna"))
    #expect(anna == .init(device: DeviceNumber(major: 0, minor: 35), path: "/Users/anna"))
    func mounts(_ text: String, _ place: MountTable.Place) -> [String] {
      MountLines(Array(text.utf8)).mounts(in: place)
    }
    #expect(mounts(own, anna) == ["/insula/Users/anna/mnt", "/insula/Users/anna/mnt/deeper"])
    let whole = MountTable.Place(device: anna.device, path: "/Users/bob")
    #expect(mounts(own, whole) == ["/insula/Users/bob"], "on the directory itself")
    #expect(
      here.place(of: "/home/anna") == .init(device: DeviceNumber(major: 8, minor: 1), path: "/home/anna"))
    // Elsewhere the same filesystem, or a part of it, has another place.
    let elsewhere = """
      50 1 0:35 / /other rw - fuse.insula /store rw
      51 50 0:40 / /other/Users/anna/a rw - tmpfs none rw
      52 1 0:35 /Users /people rw - fuse.insula /store rw
      53 52 0:41 / /people/anna/b rw - tmpfs none rw
      54 1 0:35 /Users/anna/Documents /documents rw - fuse.insula /store rw
      55 54 0:42 / /documents/c\\040d rw - tmpfs none rw
      56 1 0:43 / /tmp rw - tmpfs none rw
      57 54 0:44 / /documents rw - tmpfs none rw
      58 50 0:45 / /other/Users rw - tmpfs none rw
      """
    #expect(
      mounts(elsewhere, anna) == ["/documents", "/documents/c d", "/other/Users/anna/a", "/people/anna/b"])
    #expect(mounts(elsewhere, .init(device: anna.device, path: "/")).count == 5, "in all of it")
    #expect(MountLines(Array(elsewhere.utf8)).mounts(in: anna, limit: 2).count == 2)
  }

  @Test func linesThatMakeNoSenseAreNoMounts() {
    let anna = MountTable.Place(device: DeviceNumber(major: 0, minor: 35), path: "/a")
    let text = """
      1 1 0:35 / / rw
      2 1 0:36 / /a/b rw
      3 2 0:36 / /a/b/c rw
      4 5 0:36 / /x rw
      5 4 0:36 / /x rw
      9999999999999999999 1 0:36 / /a/d rw
      6 1 0:x / /a/e rw
      7 1 036 / /a/f rw
      8 1 0:99999999999 / /a/g rw
      9 1 0:36 / /a/\\77 rw
      10 1 0:36 / /a/\\777 rw
      11 1 0:36 /

      12
      """
    #expect(MountLines(Array(text.utf8)).mounts(in: anna) == ["/a/\\77", "/a/\\777", "/a/b", "/a/b/c"])
    #expect(MountLines([]).mounts(in: anna) == [])
    #expect(MountLines(Array(text.utf8)).first(DeviceNumber(major: 0, minor: 36)) == "/a/b")
  }

  /// The attack: a user binds the tree over a great many directories of their own, and root's command
  /// compares each of these mounts with each.
  @Test(.mayTake(seconds: 300)) func manyMountsTakeOneLookAtEach() {
    let place = MountTable.Place(device: DeviceNumber(major: 0, minor: 35), path: "/Users/anna")
    var text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
    for number in 2...60_000 { text += "\(number) 1 0:35 / /mnt/x/\(number) rw - fuse.insula /store rw\n" }
    text += "70000 60000 0:36 / /mnt/x/60000/Users/anna/mnt rw - tmpfs none rw"
    #expect(MountLines(Array(text.utf8)).mounts(in: place) == ["/mnt/x/60000/Users/anna/mnt"])
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
