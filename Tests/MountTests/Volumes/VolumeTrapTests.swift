// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The daemon dies in the middle of requests that concern volumes, and nobody notices.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 300))
struct VolumeTrapTests {
  /// What is sent again waits in the queue of its volume, behind others' data that is brought to the disk.
  @Test func nothingIsAppendedTwice() throws {
    let needed = ["/usr/bin/fuse2fs", "/usr/sbin/mkfs.ext4"]
    guard needed.allSatisfy({ access($0, X_OK) == 0 }), KernelRelease.own >= KernelRelease(6, 9) else {
      Issue.record("SKIPPED: it needs fuse2fs, mkfs.ext4 and Linux 6.9")
      return
    }
    #if DEBUG
      let mounted = try MountedStore()
      let order = try TrapTests.mount(mounted, [])
      let image = mounted.temporary.appending("disk.img")
      let script = """
        import multiprocessing, os, struct, sys, time
        path, order = sys.argv[1:]
        clients, lines, rounds, end = 16, 40, 8, time.time() + 100
        def deaths(): return struct.unpack("5I", open(order, "rb").read(20))[4]
        def append(number):
            file = os.open(path + str(number), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            line = 0
            while line < lines or deaths() < rounds and time.time() < end:
                os.write(file, b"%d %s\\n" % (line, b"x" * 300)); line += 1
                if line % 4 == number % 4: os.fsync(file)
        started = [multiprocessing.Process(target=append, args=(number,)) for number in range(clients)]
        for process in started: process.start()
        for round in range(rounds):
            with open(order, "r+b", 0) as file: file.write(struct.pack("4I", 16, 2, 1, 3))
            while deaths() <= round and time.time() < end: time.sleep(0.01)
        for process in started: process.join(max(1, end - time.time()))
        found = [[line.split()[0] for line in open(path + str(number), "rb")] for number in range(clients)]
        for all in found:
            if all != [b"%d" % line for line in range(len(all))]: print(all)
        print(deaths(), len(found))
        """
      let result = try Program.run(
        [
          "sh", "-c",
          """
          truncate -s 64M "$1"; mkfs.ext4 -qF "$1"; "$0" volume add "$1" --engine program --store "$2" >&2
          timeout 120 /usr/bin/python3 -c "$4" "$2/Volumes/disk/" "$3"
          "$0" volume eject disk --force --store "$2" >&2
          """, Program.insula, image, mounted.point, order, script,
        ], environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
      #expect(result.output == "8 16\n", "\(result)")
      #expect(try mounted.unmount().status == 0)
    #endif
  }
}
