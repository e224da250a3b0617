// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import Synchronization

/// Memory that lies in a file without a name, so that it can outlive this process: whoever has the file maps
/// it and finds what is there.
///
/// Corresponds to `memfd_create(2)`. It has its size from the beginning, and no pages; room is made before it
/// is used, so that a machine without memory gives an error then, and no signal later.
package final class SharedMemory: @unchecked Sendable {
  // Unchecked: who may touch what is agreed upon by its users.
  package let base: UnsafeMutableRawPointer
  package let size: Int
  private let file: OwnedFD

  /// `name` is what /proc shows.
  package convenience init(_ name: String, size: Int) throws(Errno) {
    try self.init(OwnedFD(owning: try check(clx_memory_file(name, off_t(size)))), size: size)
  }

  /// Maps what another process has left.
  package convenience init(adopting file: consuming OwnedFD) throws(Errno) {
    let size = try file.fd.status().st_size
    guard size > 0 else { throw .EINVAL }
    try self.init(file, size: Int(size))
  }

  private init(_ file: consuming OwnedFD, size: Int) throws(Errno) {
    let mapped = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.fd.raw, 0)
    guard let mapped, mapped != MAP_FAILED else { throw .last }
    base = mapped
    self.size = size
    self.file = file
  }

  deinit { munmap(base, size) }

  /// What another process needs to have it too.
  package var fd: FD { file.fd }

  /// All of it.
  package var whole: SharedRegion { SharedRegion(self, 0..<size) }
}

/// A part of shared memory, for one use.
package struct SharedRegion: Sendable {
  private let memory: SharedMemory
  private let range: Range<Int>

  package init(_ memory: SharedMemory, _ range: Range<Int>) {
    self.memory = memory
    self.range = range.clamped(to: 0..<memory.size)
  }

  package var base: UnsafeMutableRawPointer { memory.base + range.lowerBound }
  package var size: Int { range.count }

  /// Makes room, which is zero where there was none; ENOMEM or ENOSPC if the machine has none.
  package func makeRoom(_ part: Range<Int>) throws(Errno) {
    try memory.fd.allocate(
      mode: 0, offset: Int64(range.lowerBound + part.lowerBound), length: Int64(part.count))
  }

  /// Gives the pages of this part back, all of which are its own.
  package func giveBack(_ part: Range<Int>) {
    madvise(base + part.lowerBound, part.count, MADV_REMOVE)
  }

  /// Where there is room now, in order; to look anywhere else would make some.
  ///
  /// Corresponds to `SEEK_DATA` and `SEEK_HOLE`.
  package var roomy: [Range<Int>] {
    var found: [Range<Int>] = []
    var at = range.lowerBound
    while at < range.upperBound {
      let start = Int(lseek(memory.fd.raw, off_t(at), CLX_SEEK_DATA))
      guard start >= 0, start < range.upperBound else { break }
      let hole = Int(lseek(memory.fd.raw, off_t(start), CLX_SEEK_HOLE))
      let end = min(hole > start ? hole : range.upperBound, range.upperBound)
      found.append(start - range.lowerBound..<end - range.lowerBound)
      at = end
    }
    return found
  }

  /// Maps the pages of a part at once, which is much faster than one by one as they are touched.
  ///
  /// Corresponds to `MADV_POPULATE_WRITE`; where the kernel has none (before 5.14), they come one by one.
  package func touch(_ part: Range<Int>) { madvise(base + part.lowerBound, part.count, 23) }

  /// Runs `body`, which goes through parts from the first one on, while another thread maps their pages from
  /// the last one on: with many pages that is a third of the work.
  package func touchingAhead(_ parts: [Range<Int>], _ body: () -> Void) {
    let step = 1 << 20
    let blocks = parts.flatMap { part in
      stride(from: part.lowerBound, to: part.upperBound, by: step).map {
        $0..<min($0 + step, part.upperBound)
      }
    }
    guard blocks.count > 8 else { return body() }
    let isOver = SharedFlag()
    let helper = try? JoinableThread(name: "insula-memory") {
      for block in blocks.reversed() where !isOver.isSet { touch(block) }
    }
    body()
    isOver.set()
    helper?.join()
  }
}

/// Tells other threads something, once.
private final class SharedFlag: Sendable {
  private let value = Atomic<Bool>(false)
  var isSet: Bool { value.load(ordering: .relaxed) }
  func set() { value.store(true, ordering: .relaxed) }
}
