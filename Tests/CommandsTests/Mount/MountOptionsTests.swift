// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Daemon
internal import Policy
internal import Testing

@Suite struct MountOptionsTests {
  private func flags(_ values: String...) throws -> Set<MountFlag> {
    try MountOptions(values).serve.mountFlags
  }

  @Test func withoutOptionsOnlyDevicesAreOff() throws {
    let options = try MountOptions([])
    #expect(options.serve.mountFlags == [.nodev])
    #expect(!options.serve.readOnly && !options.isRemount && !options.allowsNonEmpty && options.source == nil)
  }

  @Test func theLastWordCounts() throws {
    #expect(try MountOptions(["ro,rw"]).serve.readOnly == false)
    #expect(try MountOptions(["rw", "ro"]).serve.readOnly)
    #expect(try flags("nosuid,suid,noexec", "exec,nosuid") == [.nodev, .nosuid])
    #expect(try flags("noatime,relatime") == [.nodev, .relatime])
    #expect(try flags("strictatime,noatime,atime") == [.nodev])
    #expect(try flags("sync,async,dirsync,nodiratime,diratime,dev") == [.dirsync])
  }

  @Test func insulasOwn() throws {
    let options = try MountOptions([
      "nogrpid,nopassthrough,nohandles,local_locks,threads=3,poll=0,cache=0.5,fsname=a b,nonempty,remount"
    ])
    #expect(options.serve.purges == .usual)
    #expect(
      try MountOptions(["nopurge,purge=5%:10%"]).serve.purges == .below(.percent(5), until: .percent(10)))
    #expect(try MountOptions(["purge=5%:10%,nopurge"]).serve.purges == .never)
    #expect(options.serve.callerGroup && !options.serve.passthrough && !options.serve.fileHandles)
    #expect(options.serve.localLocks && options.serve.threads == 3 && options.serve.pollMicroseconds == 0)
    #expect(options.serve.cacheSeconds == 0.5 && options.source == "a b")
    #expect(options.allowsNonEmpty && options.isRemount)
  }

  @Test(
    arguments: [
      "auto", "noauto", "user", "users", "owner", "group", "nofail", "_netdev", "defaults",
      "x-systemd.automount",
      "X-mount.mkdir=0755", "comment=a=b", "context=\"a,b\"", "", ",,", "lazytime", "subtype=insula",
    ])
  func thoseOfOthersArePassedOver(word: String) throws {
    #expect(try MountOptions([word]) == MountOptions([]))
  }

  @Test(
    arguments: [
      "nonsense", "uid=0", "umask=0", "default_permissions", "threads=0", "threads=x", "threads=",
      "threads=257",
      "threads=99999999999999999999", "poll=-1", "poll=10001", "cache=-1", "cache=nan", "cache=inf",
      "cache=x",
      "ro=1", "RO", "nosuid=", "threads", "purge", "purge=5%", "purge=10%:5%", "nopurge=1",
    ])
  func whatMakesNoSenseIsNamed(word: String) {
    let error = #expect(throws: UsageError.self) { try MountOptions(["ro,\(word),rw"]) }
    let name = word.split(separator: "=").first.map(String.init) ?? word
    #expect(error?.message.contains(name) == true)
  }

  @Test func sloppyPassesOverTheUnknownAndNotTheWrong() throws {
    #expect(try MountOptions(["nonsense,uid=0,ro"], sloppy: true).serve.readOnly)
    #expect(throws: UsageError.self) { try MountOptions(["threads=x"], sloppy: true) }
  }
}
