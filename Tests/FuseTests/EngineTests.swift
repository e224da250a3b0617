// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What is asked of the helper that mounts disks and servers.
struct EngineTests {
  @Test(
    arguments: [
      ("sftp://me@nas/music", "me", "nas", nil, "/music"), ("sftp://nas", nil, "nas", nil, "/"),
      ("sftp://nas:2222/a%20b", nil, "nas", 2222, "/a b"),
      ("davs://h.example/x/", nil, "h.example", nil, "/x/"),
      ("sftp://me@[fe80::1]:22/x", "me", "fe80::1", 22, "/x"), ("gluster://a/vol", nil, "a", nil, "/vol"),
      ("sftp://a%40b@h/", "a@b", "h", nil, "/"), ("rclone:photos:2026/x", nil, "photos", nil, "2026/x"),
    ] as [(String, String?, String, UInt16?, String)])
  func addressesAreTakenApart(
    _ text: String, _ user: String?, _ host: String, _ port: UInt16?, _ path: String
  ) throws {
    let address = try #require(ServerAddress(text))
    #expect(
      address.user == user && address.host == host && address.port == port && address.path == path)
    #expect(ServerAddress(address.text) == address)
  }

  /// Nothing in them is taken for an option or a command.
  @Test(arguments: [
    "sftp://-oProxyCommand=x/y", "sftp://h ost/", "sftp://h;x/", "sftp://$(x)/", "sftp:///x", "sftp://h:0/",
    "sftp://h:99999/", "sftp://-u@h/", "sftp://u u@h/", "sftp://h/%0a", "sftp://h/%00", "sftp://h/%zz",
    "sftp://h/%f", "http://h/", "file:///etc", "rclone:x", "rclone::local:/etc", "rclone:-x:y",
    "sftp://[::1/x",
    "sftp://h/\u{1b}[2J", "", "://", "rclone://h/x",
  ])
  func othersAreNone(_ text: String) { #expect(ServerAddress(text) == nil) }

  /// A helper of mount(8)'s is a program that reads, as root, what anybody may have written to a disk.
  @Test func theKernelMountsWithoutHelpers() throws {
    for kind in DiskFormat.Kind.allCases {
      for isReadOnly in [false, true] {
        let program = try EngineProgram(mounting: kind, at: "/dev/x", isReadOnly: isReadOnly, at: "/place")
        let options = program.words.prefix { $0 != "--" }
        #expect(options.contains("-i") && options.contains(kind.rawValue), "\(program.words)")
        #expect(program.words.suffix(2) == ["/dev/x", "/place"])
      }
    }
  }

  @Test func ordersAndReportsArriveAsTheyWere() throws {
    let address = try #require(ServerAddress("sftp://me@nas:22/a%20b"))
    for source in [
      .kernel(disk: "/dev/sdb1"), .program(disk: "UUID=1-2"), .server(address), .encrypted(hasDisk: false),
      .encrypted(hasDisk: true),
    ]
      as [EngineOrder.Source]
    {
      let order = EngineOrder(
        source: source, isReadOnly: true, user: 70000, group: 3, number: 0x0102_0304, identity: [1, 2, 3])
      #expect(EngineOrder(order.bytes[...]) == order)
      for count in 0..<15 { #expect(EngineOrder(order.bytes.prefix(count)) == nil) }
      #expect(MountHelper.Request(MountHelper.Request.engine(order).bytes) == .engine(order))
    }
    var report = EngineReport(.EIO, "because")
    report.engine = "sshfs"
    report.identity = [9, 8]
    report.keepsOwners = true
    #expect(EngineReport(report.bytes) == report)
    for count in 0..<4 { #expect(EngineReport(Array(report.bytes.prefix(count))) == nil) }
    var random = SeededRandom(seed: 7)
    for _ in 0..<20_000 {
      let bytes = (0..<Int.random(in: 0..<80, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      _ = EngineOrder(bytes[...])
      _ = EngineReport(bytes)
      _ = DiskFormat(bytes[...])
    }
  }

  @Test func formatsAreToldByWhatDisksBeginWith() {
    func disk(_ pieces: [(Int, [UInt8])]) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: 0x10100)
      for (offset, piece) in pieces { bytes.replaceSubrange(offset..<(offset + piece.count), with: piece) }
      return bytes
    }
    let number = (1...16).map { UInt8($0) }
    let ext4 = DiskFormat(disk([(1080, [0x53, 0xef]), (1024 + 0x68, number)])[...])
    #expect(ext4?.kind == .ext4 && ext4?.identity == number)
    #expect(DiskFormat(disk([(0, Array("XFSB".utf8)), (32, number)])[...])?.identity == number)
    #expect(DiskFormat(disk([(0x10040, Array("_BHRfS_M".utf8))])[...])?.kind == .btrfs)
    #expect(DiskFormat(disk([(3, Array("NTFS    ".utf8))])[...])?.kind == .ntfs)
    #expect(DiskFormat(disk([(3, Array("EXFAT   ".utf8))])[...])?.kind == .exfat)
    #expect(DiskFormat(disk([(82, Array("FAT32   ".utf8))])[...])?.kind == .vfat)
    #expect(DiskFormat(disk([(32769, Array("CD001".utf8))])[...])?.kind == .iso9660)
    #expect(DiskFormat(disk([])[...]) == nil && DiskFormat([]) == nil)
  }
}
