// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

#if DEBUG
  internal import Glibc
  internal import Synchronization

  /// A system call that fails on purpose, once: for tests of what the daemon makes of a failure.
  ///
  /// In debug builds alone, and only where INSULA_FAULTS names a file. Every call that goes through
  /// `check` or `retrying` is a point. The process whose number is in the file lists each point that it
  /// passes there. It makes the call of one point fail when the file says so, in place of making the call.
  package enum Fault {
    /// The head of the file, which the test writes.
    ///
    /// The process itself writes `hits` alone.
    private struct Order {
      /// The process that is tried.
      var process: Int32
      /// The number of the point in the list, from one on; zero for none.
      var point: UInt32
      var error: Int32
      /// How many passes go well before.
      var skipped: UInt32
      /// How many calls have failed.
      var hits: UInt32
    }
    // After the head: the points' hashes, how often each was passed, and their names.
    private static let maxPoints = 512
    private static let nameLength = 112
    private static let hashesOffset = 64
    private static let passesOffset = hashesOffset + maxPoints * 8
    private static let namesOffset = passesOffset + maxPoints * 4
    private static let size = namesOffset + maxPoints * nameLength

    // Unchecked: a test changes the order while nothing is being served; the rest is atomic.
    private nonisolated(unsafe) static let file = openFile()

    private static func openFile() -> UnsafeMutableRawPointer? {
      let before = errno
      defer { errno = before }
      guard let path = getenv("INSULA_FAULTS") else { return nil }
      let file = open(path, O_RDWR | O_CLOEXEC)
      guard file >= 0 else { return nil }
      defer { close(file) }
      guard lseek(file, 0, SEEK_END) >= size else { return nil }
      let mapped = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
      return mapped == MAP_FAILED ? nil : mapped
    }

    /// Notes that this point is passed; the error with which its call must fail, if it must.
    package static func next(_ file: StaticString, _ function: StaticString) -> Errno? {
      guard let memory = Self.file else { return nil }
      let order = memory.assumingMemoryBound(to: Order.self)
      guard order.pointee.process == getpid() else { return nil }
      guard let point = number(of: file, function, in: memory) else { return nil }
      let passes = (memory + passesOffset).assumingMemoryBound(to: Atomic<UInt32>.self)
      passes[point].wrappingAdd(1, ordering: .relaxed)
      guard order.pointee.point == UInt32(point) + 1 else { return nil }
      if order.pointee.skipped > 0 {
        order.pointee.skipped -= 1
        return nil
      }
      order.pointee.point = 0
      order.pointee.hits += 1
      return Errno(order.pointee.error)
    }

    /// The place of a point in the list, which it gets when it is passed first; nil where the list is full.
    private static func number(
      of file: StaticString, _ function: StaticString, in memory: UnsafeMutableRawPointer
    ) -> Int? {
      let hash = hash(file, function)
      let hashes = (memory + hashesOffset).assumingMemoryBound(to: Atomic<UInt64>.self)
      for point in 0..<maxPoints {
        let (isNew, known) = hashes[point].compareExchange(
          expected: 0, desired: hash, ordering: .relaxed)
        if isNew { write(file, function, to: memory + namesOffset + point * nameLength) }
        if isNew || known == hash { return point }
      }
      return nil
    }

    private static func hash(_ file: StaticString, _ function: StaticString) -> UInt64 {
      var hash: UInt64 = 0xcbf2_9ce4_8422_2325
      for text in [file, function] {
        text.withUTF8Buffer { for byte in $0 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 } }
      }
      return hash | 1
    }

    /// As in "LinuxIO/FD.swift open(_:_:)"; a zero ends it.
    private static func write(
      _ file: StaticString, _ function: StaticString, to place: UnsafeMutableRawPointer
    ) {
      var room = UnsafeMutableRawBufferPointer(start: place, count: nameLength - 1)[...]
      for text in [file, " ", function] {
        text.withUTF8Buffer { bytes in
          let count = min(bytes.count, room.count)
          UnsafeMutableRawBufferPointer(rebasing: room.prefix(count)).copyMemory(
            from: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes).prefix(count)))
          room = room.dropFirst(count)
        }
      }
    }
  }
#endif
