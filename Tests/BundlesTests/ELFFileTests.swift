// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A program of nothing but what says how it is started.
struct ELFSample {
  var interpreter: String?
  var libraries: [String] = []
  var runPath: String?
  var oldPath: String?

  static let program = ELFSample(
    interpreter: "/lib64/ld-linux-x86-64.so.2", libraries: ["libx.so.1", "libc.so.6"],
    runPath: "$ORIGIN/../lib:/opt/x", oldPath: "/old")

  var bytes: [UInt8] {
    var names: [UInt8] = [0]
    func place(_ text: String) -> UInt64 {
      defer { names += Array(text.utf8) + [0] }
      return UInt64(names.count)
    }
    var entries: [(UInt64, UInt64)] = libraries.map { (1, place($0)) }
    if let runPath { entries.append((29, place(runPath))) }
    if let oldPath { entries.append((15, place(oldPath))) }
    let loader: [UInt8] = interpreter.map { Array($0.utf8) + [0] } ?? []
    // Headers, then the loader's path, the names, and the list; an address is 0x10000 more than the place.
    let start = 64 + 3 * 56
    let namesAt = start + loader.count
    let listAt = namesAt + names.count
    entries += [(5, UInt64(0x10000 + namesAt)), (10, UInt64(names.count)), (0, 0)]
    var bytes: [UInt8] = [0x7f, 0x45, 0x4c, 0x46, 2, 1, 1] + [UInt8](repeating: 0, count: 9)
    bytes += little(UInt16(3)) + little(ELFFile.ownMachine) + little(UInt32(1)) + little(UInt64(0))
    bytes +=
      little(UInt64(64)) + little(UInt64(0)) + little(UInt32(0)) + little(UInt16(64)) + little(UInt16(56))
    bytes += little(UInt16(3)) + [UInt8](repeating: 0, count: 6)
    let size = listAt + entries.count * 16
    for (type, offset, length) in [
      (UInt32(1), 0, size), (interpreter == nil ? 4 : 3, start, loader.count),
      (2, listAt, entries.count * 16),
    ] {
      bytes += little(type) + little(UInt32(4)) + little(UInt64(offset)) + little(UInt64(0x10000 + offset))
      bytes += little(UInt64(0)) + little(UInt64(length)) + little(UInt64(length)) + little(UInt64(8))
    }
    bytes += loader + names
    for (tag, value) in entries { bytes += little(tag) + little(value) }
    return bytes
  }

  private func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
  }
}

/// What ldconfig(8) writes.
enum LoaderCacheSample {
  static var new: [UInt8] {
    let text = Array("libx.so.1\u{0}/opt/x/libx.so.1\u{0}".utf8)
    func little(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }
    var bytes = Array("glibc-ld.so.cache1.1".utf8) + little(1) + little(UInt32(text.count))
    bytes += [UInt8](repeating: 0, count: 20)
    bytes += little(0x0303) + little(72) + little(82) + little(0) + little(0) + little(0)
    return bytes + text
  }

  /// With the older list before it.
  static var old: [UInt8] {
    var bytes = Array("ld.so-1.7.0\u{0}".utf8) + [1, 0, 0, 0] + [UInt8](repeating: 0, count: 12)
    while bytes.count % 8 != 0 { bytes.append(0) }
    return bytes + new
  }
}

@Suite struct ELFFileTests {
  private func read(_ bytes: [UInt8]) throws(ELFFile.Refusal) -> ELFFile {
    try ELFFile { offset, count in
      guard let start = Int(exactly: offset), start < bytes.count else { return [] }
      return Array(bytes[start...].prefix(count))
    }
  }

  private func reason(_ bytes: [UInt8]) -> ELFFile.Refusal? {
    do throws(ELFFile.Refusal) { _ = try read(bytes) } catch { return error }
    return nil
  }

  @Test func programsSayWhatTheyNeed() throws {
    let file = try read(ELFSample.program.bytes)
    #expect(file.interpreter == "/lib64/ld-linux-x86-64.so.2")
    #expect(file.libraries == ["libx.so.1", "libc.so.6"])
    #expect(file.searchPath == ["$ORIGIN/../lib", "/opt/x"] && file.isSearchPathItsOwn)
    #expect(file.isLinked && file.machine == ELFFile.ownMachine)
    let old = try read(ELFSample(libraries: ["a"], oldPath: "/old").bytes)
    #expect(old.searchPath == ["/old"] && !old.isSearchPathItsOwn && old.interpreter == nil)
  }

  /// The program under test, as the linker has made it.
  @Test func realProgramsCanBeRead() throws {
    let program = try FD.cwd.openFollowing(Program.insula, 0)
    let file = try ELFFile(program.fd)
    #expect(file.interpreter?.hasPrefix("/lib") == true && file.isLinked)
    #expect(file.libraries.contains("libc.so.6"))
  }

  @Test func damagedProgramsAreRefused() throws {
    let good = ELFSample.program.bytes
    #expect(reason(Array("#!/bin/sh".utf8)) == .notELF && reason([]) == .notELF)
    #expect(reason(Array(good.prefix(40))) == .damaged("its header is cut short"))
    #expect(reason(Array(good.dropLast(1))) == .damaged("it is cut short"))
    func changed(_ change: (inout [UInt8]) -> Void) -> ELFFile.Refusal? {
      var bytes = good
      change(&bytes)
      return reason(bytes)
    }
    #expect(changed { $0[4] = 1 } == .unsupported("it is a 32-bit program"))
    #expect(changed { $0[5] = 2 } == .unsupported("it is for another kind of processor"))
    #expect(
      changed {
        $0[56] = 0xff; $0[57] = 0xff
      } == .damaged("it has too many segments"))
    #expect(changed { for index in 32..<40 { $0[index] = 0xff } } == .damaged("it is cut short"))
    // The size of the loader's path, and of the list.
    #expect(changed { $0[64 + 56 + 33] = 0xff } == .damaged("the path of its loader is too long"))
    #expect(changed { $0[64 + 112 + 35] = 0xff } == .damaged("its list of libraries is too long"))
    // The first library's name.
    #expect(
      changed { $0[$0.count - 16 * 7 + 15] = 0x7f } == .damaged("a name of a library is outside of its names")
    )
  }

  @Test func theLoadersCacheIsRead() {
    for bytes in [LoaderCacheSample.new, LoaderCacheSample.old] {
      #expect(LoaderCache(bytes).paths(of: "libx.so.1") == ["/opt/x/libx.so.1"])
      #expect(LoaderCache(bytes).paths(of: "other") == [])
    }
    #expect(LoaderCache(Array("nonsense".utf8)).paths(of: "libx.so.1") == [])
  }

  @Test func firstLinesAreReadAsTheKernelDoes() {
    func line(_ text: String) -> ScriptLine? { ScriptLine(Array(text.utf8)) }
    #expect(line("#!/bin/sh\nexit")?.interpreter == "/bin/sh" && line("#! /bin/sh")?.argument == nil)
    let env = line("#!/usr/bin/env -S python3 -u \n")
    #expect(env?.argument == "-S python3 -u" && env?.wanted == "python3")
    #expect(line("#!/bin/sh -e\n")?.wanted == nil && line("#!/bin/sh -e\n")?.argument == "-e")
    #expect(line("echo") == nil && line("#!") == nil && line("#!\n/bin/sh") == nil)
  }
}
