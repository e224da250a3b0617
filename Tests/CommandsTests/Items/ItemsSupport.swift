// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import TestSupport

/// Music that is made here.
enum MadeSong {
  /// An MP3 file of one second with these frames of ID3v2.
  static func mp3(_ tags: [(String, String)]) -> [UInt8] {
    let frames = tags.flatMap { name, text in
      let content = [3] + Array(text.utf8)
      return Array(name.utf8) + bytes(content.count, bits: 8) + [0, 0] + content
    }
    let header = Array("ID3".utf8) + [3, 0, 0] + bytes(frames.count, bits: 7)
    // MPEG 1 layer 3, 128 kbit/s, 44.1 kHz, without sound.
    let frame = [0xff, 0xfb, 0x90, 0x00] + [UInt8](repeating: 0, count: 413)
    return header + frames + (0..<40).flatMap { _ in frame }
  }

  private static func bytes(_ number: Int, bits: Int) -> [UInt8] {
    [3, 2, 1, 0].map { UInt8(truncatingIfNeeded: number >> ($0 * bits)) & (bits == 7 ? 0x7f : 0xff) }
  }
}

/// The sandbox of the process that parses, started as `insula run` does.
enum Bubblewrapped {
  static let path = "/usr/bin/bwrap"
  static let isPossible =
    access(path, X_OK) == 0
    && (try? Program.run([path, "--ro-bind", "/", "/", "--unshare-user", "true"]))?.status == 0

  static func parser(patience: Int32) throws -> ItemParserProcess {
    let program = OwnProgram(started: Program.insula)
    return ItemParserProcess(path, ItemParserSandbox(program: program), patience: patience)
  }

  /// What a process under the filter says, in lines.
  static func filtered(_ body: () -> [String]) throws -> [String] {
    let ends = try LinuxIO.pipe()
    let child = clx_fork()
    if child == 0 {
      guard (try? ItemParserSandbox.filter.install(forAllThreads: false)) != nil else { _exit(1) }
      let text = body().joined(separator: "\n")
      _ = write(ends.write.fd.raw, text, text.utf8.count)
      _exit(0)
    }
    let read = ends.takeRead()
    let told = try read.fd.readToEnd(limit: 4096)
    var status: Int32 = 0
    _ = waitpid(child, &status, 0)
    return String(decoding: told, as: UTF8.self).split(separator: "\n").map(String.init)
  }
}
