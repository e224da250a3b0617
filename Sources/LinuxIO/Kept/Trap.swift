// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

#if DEBUG
  internal import CLinux
  internal import Glibc

  /// A death on purpose, in the middle of a request: for tests of what the next worker makes of it.
  ///
  /// In debug builds alone, and only where INSULA_TRAP names a file that says when. Whoever tests writes to
  /// it while the worker runs: five words, which are the operation by the kernel's number (0 for a change of
  /// the daemon's own), the point, how many times, how many such moments to let pass before, and how often it
  /// has happened.
  package enum Trap {
    package enum Point: UInt32 {
      /// The request has been read, and nothing has been done.
      case read = 1
      /// What can't be done twice is done, and not noted as done.
      case done
      /// It has been noted.
      case noted
      /// All is done but the reply; the reply has been sent.
      case answering, answered
      /// After any system call of the request's.
      case call
    }
    private struct Order {
      var operation: UInt32
      var point: UInt32
      var times: UInt32
      var others: UInt32
      var deaths: UInt32
    }
    // Unchecked: whoever writes does so while nothing is being served.
    private nonisolated(unsafe) static let order = openOrder()
    /// What each thread serves.
    private nonisolated(unsafe) static let operations = {
      let operations = UnsafeMutablePointer<UInt32>.allocate(capacity: threads)
      operations.initialize(repeating: 0, count: threads)
      return operations
    }()
    private static let threads = 1024

    private static func openOrder() -> UnsafeMutablePointer<Order>? {
      let before = errno
      defer { errno = before }
      guard let path = getenv("INSULA_TRAP") else { return nil }
      let file = open(path, O_RDWR | O_CLOEXEC)
      guard file >= 0 else { return nil }
      defer { close(file) }
      let mapped = mmap(nil, MemoryLayout<Order>.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
      guard let mapped, mapped != MAP_FAILED else { return nil }
      return mapped.bindMemory(to: Order.self, capacity: 1)
    }

    /// This thread serves a request from here on.
    package static func begin(_ operation: UInt32) {
      guard order != nil, clx_thread_number() < threads else { return }
      operations[Int(clx_thread_number())] = operation
      at(.read)
    }

    package static func end() {
      guard order != nil, clx_thread_number() < threads else { return }
      // FORGET and its like have no reply.
      if operations[Int(clx_thread_number())] == 2 || operations[Int(clx_thread_number())] == 42 {
        at(.answered)
      }
      operations[Int(clx_thread_number())] = 0
    }

    package static func at(_ point: Point) {
      guard let order, order.pointee.times > 0, order.pointee.point == point.rawValue else { return }
      let thread = clx_thread_number()
      guard thread < threads, operations[Int(thread)] == order.pointee.operation else { return }
      if order.pointee.others > 0 {
        order.pointee.others -= 1
        return
      }
      order.pointee.times -= 1
      order.pointee.deaths += 1
      raise(SIGKILL)
    }
  }
#endif
