// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What of an encrypted volume's files stays in the memory of the process that serves, after it was locked.
@Suite(
  .enabled(if: EncryptedFixture.isPossible, "mounting needs root, /dev/fuse and gocryptfs"),
  .mayTake(seconds: 300))
struct LockedMemoryTests {
  /// Counts how often a text is in the memory of a process: `search.py PID TEXT`, each byte of the text moved
  /// by one, so that nothing of the search finds itself.
  private static let search = """
    import sys
    pid, text = sys.argv[1], bytes(c + 1 for c in sys.argv[2].encode())
    found = 0
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in open(f"/proc/{pid}/maps"):
            words = line.split()
            # What the kernel keeps of its own; and what no process has touched is large and empty.
            if "r" not in words[1] or words[-1] in ("[vvar]", "[vvar_vclock]", "[vsyscall]"): continue
            if len(words) > 5 and not words[5].startswith("[") and "memfd" not in words[5]: continue
            start, end = (int(word, 16) for word in words[0].split("-"))
            at, rest = start, b""
            page_map = open(f"/proc/{pid}/pagemap", "rb", 0)
            while at < end:
                size = min(1 << 22, end - at)
                page_map.seek(at // 4096 * 8)
                flags = page_map.read(size // 4096 * 8)
                # Present, or swapped.
                if any(flags[number] & 0xc0 for number in range(7, len(flags), 8)):
                    try:
                        memory.seek(at)
                        part = rest + memory.read(size)
                        found += part.count(text)
                        rest = part[-len(text) + 1:]
                    except OSError: rest = b""
                else: rest = b""
                at += size
    print(found)
    """

  private func found(_ text: String, in process: Int32) throws -> Int {
    let moved = String(decoding: text.utf8.map { $0 - 1 }, as: UTF8.self)
    let result = try Program.run(["/usr/bin/python3", "-c", Self.search, "\(process)", moved])
    return try #require(Int(result.output.dropLast()), "\(result)")
  }

  /// What users write and read comes through the process that serves; it is gone when the volume is locked.
  @Test(arguments: [false, true]) func nothingOfAFileStays(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    let text = "plaintext-of-\(UUID().uuidString)"
    let worker = try #require(try fixture.run.mounted.daemon())
    try fixture.expect(
      """
      create Private
      for i in 1 2 3 4 5 6; do yes '\(text)' | head -c 3000000 >$V/Private/$i; done
      for i in 1 2 3 4 5 6; do echo '\(text)' >$V/Private/short$i; done
      sync $V/Private/1 $V/Private/short*; echo 3 2>/dev/null >/proc/sys/vm/drop_caches
      cat $V/Private/[1-6] | wc -c; cat $V/Private/short* | sort -u
      dd if=$V/Private/2 bs=1M iflag=direct of=/dev/null 2>/dev/null
      volume lock Private --force
      """, "18000000\n\(text)\n")
    #expect(try fixture.run.mounted.daemon() == worker)
    #expect(try found(text, in: worker) == 0)
    #expect(try fixture.run.mounted.unmount().status == 0)
  }

  /// The search finds what is there, so that nothing is not found for another reason.
  @Test func searchFindsWhatIsThere() throws {
    let text = "kept-\(UUID().uuidString)"
    let script =
      "import sys, time; kept = (sys.argv[1] * 3).encode(); print('ready', flush=True); time.sleep(60)"
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
    process.arguments = ["-c", script, text]
    let output = Pipe()
    process.standardOutput = output
    try Program.withSignalsUnblocked { try process.run() }
    defer {
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
    #expect(try output.fileHandleForReading.read(upToCount: 6)?.count == 6)
    #expect(try found(text, in: process.processIdentifier) >= 3)
  }

  /// From the first one on, the process leaves no image of its memory; nor does the next one.
  @Test(arguments: [false, true]) func noImageIsLeft(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    func limit() throws -> [Substring] {
      let worker = try #require(try fixture.run.mounted.daemon())
      let limits = try #require(FD.text(of: "/proc/\(worker)/limits", limit: 1 << 16))
      let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
      return Array(line.dropFirst(18).split(separator: " ").prefix(2))
    }
    #expect(try limit() != ["1", "1"])
    try fixture.expect("create Private; echo x >$V/Private/x", "")
    #expect(try limit() == ["1", "1"])
    let worker = try #require(try fixture.run.mounted.daemon())
    kill(worker, SIGKILL)
    try fixture.expect("cat $V/Private/x", "x\n")
    #expect(try fixture.run.mounted.daemon() != worker)
    #expect(try limit() == ["1", "1"])
    try fixture.expect("volume lock Private --force", "")
    #expect(try fixture.run.mounted.unmount().status == 0)
  }
}
