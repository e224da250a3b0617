// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

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
  package init(_ name: String, size: Int) throws(Errno) {
    let file = OwnedFD(owning: try check(clx_memory_file(name, off_t(size))))
    let mapped = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.fd.raw, 0)
    guard let mapped, mapped != MAP_FAILED else { throw .last }
    base = mapped
    self.size = size
    self.file = file
  }

  deinit { munmap(base, size) }

  /// What another process needs to have it too.
  package var fd: FD { file.fd }

  /// Makes room, which is zero where there was none; ENOMEM or ENOSPC if the machine has none.
  package func makeRoom(_ range: Range<Int>) throws(Errno) {
    try file.fd.allocate(mode: 0, offset: Int64(range.lowerBound), length: Int64(range.count))
  }

  /// Gives the pages of this range back, all of which are its own.
  package func giveBack(_ range: Range<Int>) {
    madvise(base + range.lowerBound, range.count, MADV_REMOVE)
  }
}
