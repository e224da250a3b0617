// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import LinuxIO

/// The system calls that a daemon makes when its mount is there, for seccomp(2); all others fail with EPERM.
///
/// - It starts no program and no process, enters no namespace, gives no mount a place, and traces nobody.
/// - The larger machinery of the kernel does not concern it: bpf, performance counters, io_uring,
///   userfaultfd, keys, modules, clocks, drivers (but for a few requests of ioctl), networks but the
///   internet's and local ones.
/// - What is newer than this list is said not to be there (ENOSYS), as on an older kernel: a C library that
///   knows it then takes another way.
package enum DaemonFilter {
  private typealias Answer = FilterProgram.Answer

  /// From here on this list knows no calls.
  private static let firstUnknown: UInt32 = 470
  /// CLONE_THREAD, and the flags of clone(2) that lead into a namespace.
  private static let makesThread: UInt32 = 0x0001_0000
  private static let makesNamespace: UInt32 = 0x7e02_0000

  /// What is asked by ioctl(2).
  ///
  /// FUSE's backing files; FICLONE, FS_IOC_GETFLAGS, FS_IOC_SETFLAGS; FIONREAD, FIONBIO, FIOCLEX, FIONCLEX,
  /// and whether something is a terminal (TCGETS, TCGETS2). Of networks what name services may ask:
  /// SIOCGIFNAME, SIOCGIFCONF, SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFINDEX.
  private static let requests: [UInt32] = [
    0x4010_e501, 0x4004_e502, 0x4004_9409, 0x8008_6601, 0x4008_6602, 0x541b, 0x5421, 0x5451, 0x5450, 0x5401,
    0x802c_542a, 0x8910, 0x8912, 0x8913, 0x8915, 0x8933,
  ]

  /// What is asked and set by prctl(2).
  ///
  /// Names of threads and of memory, securebits, and questions.
  /// PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_GET_SECUREBITS, PR_SET_SECUREBITS, PR_GET_DUMPABLE,
  /// PR_CAPBSET_READ.
  private static let settings: [UInt32] = [15, 16, 0x5356_4d41, 27, 28, 3, 23]

  /// Sets it up for all threads, and with it that none of them gains privileges, and that no memory can be
  /// written and then run.
  static func install(isSystem: Bool) throws(Errno) {
    try check(clx_refuse_made_code())
    try program(isSystem: isSystem).install(forAllThreads: true)
  }

  package static func program(isSystem: Bool) -> FilterProgram {
    var program = FilterProgram.start
    program += FilterProgram.when(
      clx_filter_ioctl(),
      FilterProgram.choose(.second, of: requests, .allowed, otherwise: .fails(.EPERM)))
    program += FilterProgram.when(
      clx_filter_clone(),
      [
        .load(.first), .ifAnyBit(of: makesThread, skip: 1, elseSkip: 0), .answer(.fails(.EPERM)),
        .ifAnyBit(of: makesNamespace, elseSkip: 1), .answer(.fails(.EPERM)), .answer(.allowed),
      ])
    // Its flags lie in memory, where no filter can look; the C library then takes clone(2).
    program += FilterProgram.when(clx_filter_clone3(), [.answer(.fails(.ENOSYS))])
    program += FilterProgram.when(
      clx_filter_prctl(),
      FilterProgram.choose(.first, of: settings, .allowed, otherwise: .fails(.EPERM)))
    // Its own limits alone.
    program += FilterProgram.when(
      clx_filter_prlimit(), FilterProgram.choose(.first, of: [0], .allowed, otherwise: .fails(.EPERM)))
    // Its own threads' time slices alone.
    for call in [clx_filter_sched_getattr(), clx_filter_sched_setattr()] {
      program += FilterProgram.when(
        call, FilterProgram.choose(.first, of: [0], .allowed, otherwise: .fails(.EPERM)))
    }
    program += FilterProgram.when(clx_filter_socket(), FilterProgram.sockets)
    return FilterProgram(program + FilterProgram.search(ranges(isSystem: isSystem)[...]))
  }

  /// The numbers that are answered alike, beginning with 0.
  private static func ranges(isSystem: Bool) -> [(from: UInt32, answer: Answer)] {
    let room = 1024
    let calls = [Int32](unsafeUninitializedCapacity: room) { calls, filled in
      filled = calls.baseAddress.map { Int(clx_daemon_calls(isSystem ? 1 : 0, $0, UInt32(room))) } ?? 0
    }
    var ranges: [(from: UInt32, answer: Answer)] = []
    var next: UInt32 = 0
    for call in calls.compactMap({ UInt32(exactly: $0) }) where call >= next {
      if call > next { ranges.append((next, .fails(.EPERM))) }
      if call > next || ranges.isEmpty { ranges.append((call, .allowed)) }
      next = call + 1
    }
    return ranges + [(next, .fails(.EPERM)), (firstUnknown, .fails(.ENOSYS))]
  }
}
