// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// What a program or library in ELF says of how it is started: its loader, and the libraries that it needs.
///
/// It is read and never run. `ldd` starts the loader that a file names, which may be any program; so it is
/// not for files of others.
package struct ELFFile: Equatable, Sendable {
  /// Why a file can't be used.
  package enum Refusal: Error, Equatable {
    case notELF
    /// It may be good for others.
    case unsupported(String)
    case damaged(String)
    case failed(Errno)
  }

  /// `EM_*`: the processors that it is for.
  package let machine: UInt16
  /// The loader; nil for a library, or a program that needs none.
  package let interpreter: String?
  /// The names of the libraries that it needs, or paths.
  package let libraries: [String]
  /// Where the loader looks for them first, `$ORIGIN` not replaced.
  package let searchPath: [String]
  /// Whether that is only for its own libraries, and not for those that they need.
  package let isSearchPathItsOwn: Bool
  /// Whether it is something that can be started or loaded, rather than a part of a program or a core dump.
  package let isLinked: Bool

  /// The processors that this program runs on.
  package static var ownMachine: UInt16 {
    #if arch(x86_64)
      62
    #else
      183
    #endif
  }

  /// Reads it from an open file.
  package init(_ file: FD) throws(Refusal) {
    try self.init { (offset, count) throws(Errno) in
      var bytes = [UInt8](repeating: 0, count: count)
      var done = 0
      while done < count {
        guard let place = Int64(exactly: offset).map({ $0.addingReportingOverflow(Int64(done)) }),
          !place.overflow
        else { break }
        let start = done
        var read = 0
        var failure: Errno?
        bytes.withUnsafeMutableBytes { buffer in
          let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[start...])
          do throws(Errno) { read = try file.read(into: rest, at: place.partialValue) } catch {
            failure = error
          }
        }
        if let failure { throw failure }
        if read <= 0 { break }
        done += read
      }
      bytes.removeLast(count - done)
      return bytes
    }
  }

  /// Reads it by a function that gives so many bytes from an offset on, or fewer where the file ends.
  init(_ read: @escaping (_ offset: UInt64, _ count: Int) throws(Errno) -> [UInt8]) throws(Refusal) {
    let reader = ELFReader(read: read)
    let header = try reader.header()
    machine = header.machine
    isLinked = [2, 3].contains(header.type)
    let segments = try reader.segments(header)
    interpreter = try segments.first { $0.type == ELFReader.interpreterSegment }.map {
      (segment) throws(Refusal) in try reader.interpreter(segment)
    }
    let dynamic = try reader.dynamic(segments)
    libraries = dynamic.libraries
    isSearchPathItsOwn = !dynamic.runPath.isEmpty
    searchPath = dynamic.runPath.isEmpty ? dynamic.oldPath : dynamic.runPath
  }
}
