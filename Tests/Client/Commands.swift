// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// What a client can be told to do, and the descriptors that it has open.
struct Commands {
  private var files: [Int32] = []
  private var map: UnsafeMutableRawPointer?
  private var mapSize = 0

  mutating func run(_ words: [String]) -> String {
    let name = words.first ?? ""
    let arguments = Array(words.dropFirst())
    func text(_ index: Int) -> String { index < arguments.count ? arguments[index] : "" }
    func number(_ index: Int) -> Int { Int(text(index)) ?? 0 }
    if let answer = runNames(name, text, number) ?? runFiles(name, text, number)
      ?? runLocks(name, text, number) ?? runCoherence(name, arguments)
    {
      return answer
    }
    if name == "loop" { return loop(milliseconds: number(0), arguments.dropFirst()) }
    if name == "use granted" { useGranted(text(0), text(1), notes: text(2), slot: number(3)) }
    if name == "rename to and fro" { renameToAndFro(text(0), text(1)) }
    if name == "hammer" { return hammer(Array(arguments.dropFirst()), flag: text(0)) }
    if name == "hammer by" {
      return hammer(
        Array(arguments.dropFirst(2)), flag: text(0), by: text(1).split(separator: " ").map(String.init))
    }
    complain("no such command: \(name)")
  }

  private func answer(_ result: Int, _ text: String = "") -> String {
    result < 0 ? "\(errno)" : text.isEmpty ? "ok" : "ok\t" + text
  }
  private func answer(_ result: Int32, _ text: String = "") -> String { answer(Int(result), text) }

  private func runNames(_ name: String, _ text: (Int) -> String, _ number: (Int) -> Int) -> String? {
    switch name {
    case "mkdir": answer(mkdir(text(0), mode_t(number(1))))
    case "rmdir": answer(rmdir(text(0)))
    case "unlink": answer(unlink(text(0)))
    case "rename": answer(rename(text(0), text(1)))
    case "exchange": answer(clx_renameat2(AT_FDCWD, text(0), AT_FDCWD, text(1), UInt32(CLX_RENAME_EXCHANGE)))
    case "link": answer(link(text(0), text(1)))
    case "symlink": answer(symlink(text(0), text(1)))
    case "mkfifo": answer(mkfifo(text(0), mode_t(number(1))))
    case "chmod": answer(chmod(text(0), mode_t(number(1))))
    case "chown": answer(lchown(text(0), uid_t(number(1)), gid_t(number(2))))
    case "touch": answer(utimes(text(0), nil))
    case "truncate": answer(truncate(text(0), number(1)))
    case "access": answer(access(text(0), Int32(number(1))))
    case "setxattr": answer(setxattr(text(0), text(1), text(2), text(2).utf8.count, 0))
    case "removexattr": answer(removexattr(text(0), text(1)))
    case "setxattr hex":
      answer(bytes(text(2)).withUnsafeBytes { lsetxattr(text(0), text(1), $0.baseAddress, $0.count, 0) })
    case "stat": stat(text(0))
    case "chdir": answer(chdir(text(0)))
    case "getcwd": answer(getcwd(nil, 0).map { free($0) } == nil ? -1 : 0)
    case "bind": bound(text(0))
    case "connect": connected(text(0))
    case "list": list(text(0))
    default: nil
    }
  }

  /// Runs commands, whose words stand between blanks, in turn until the time is over and more than ten have
  /// run, which takes longer on a busy machine: how many, and how many of them failed.
  private mutating func loop(milliseconds: Int, _ commands: ArraySlice<String>) -> String {
    let end = monotonicMilliseconds() + milliseconds
    var (done, failed) = (0, 0)
    while done <= 10 || monotonicMilliseconds() < end {
      for command in commands {
        done += 1
        if !run(command.split(separator: " ").map(String.init)).hasPrefix("ok") { failed += 1 }
      }
    }
    return answer(0, "\(done)\t\(failed)")
  }

  private func monotonicMilliseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
  }

  /// Calls `body` with a stream socket and the address of a path.
  private func withSocket(
    _ path: String, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    return withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  /// Listens there for as long as this process lives.
  private func bound(_ path: String) -> String {
    answer(withSocket(path) { bind($0, $1, $2) == 0 ? listen($0, 100) : -1 })
  }

  private func connected(_ path: String) -> String {
    let result = withSocket(path) { descriptor, address, length in
      let result = connect(descriptor, address, length)
      let error = errno
      close(descriptor)
      errno = error
      return result
    }
    return answer(result)
  }

  /// What pairs of hexadecimal digits stand for.
  private func bytes(_ hex: String) -> [UInt8] {
    var rest = Substring(hex)
    var bytes: [UInt8] = []
    while rest.count >= 2 {
      bytes.append(UInt8(rest.prefix(2), radix: 16) ?? 0)
      rest.removeFirst(2)
    }
    return bytes
  }

  private func stat(_ path: String) -> String {
    var status = Glibc.stat()
    let result = lstat(path, &status)
    return answer(result, "\(status.st_uid)\t\(status.st_gid)\t\(status.st_mode)\t\(status.st_size)")
  }

  private func list(_ path: String) -> String {
    guard let directory = opendir(path) else { return answer(-1) }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    return answer(0, "\(count)")
  }

  private mutating func runFiles(_ name: String, _ text: (Int) -> String, _ number: (Int) -> Int) -> String? {
    switch name {
    case "open", "create":
      let flags = name == "create" ? O_RDWR | O_CREAT | O_EXCL : Int32(number(1))
      let file = clx_open(text(0), flags, mode_t(number(name == "create" ? 1 : 2)))
      if file >= 0 { files.append(file) }
      return answer(file, "\(files.count - 1)")
    case "open at":
      // An open directory, a name in it, flags.
      let file = clx_openat(files[number(0)], text(1), Int32(number(2)), 0)
      if file >= 0 { files.append(file) }
      return answer(file, "\(files.count - 1)")
    case "close":
      let file = files[number(0)]
      return answer(Glibc.close(file))
    case "close all":
      for file in files { Glibc.close(file) }
      files = []
      return "ok"
    case "read":
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = pread(files[number(0)], &buffer, buffer.count, off_t(number(1)))
      return answer(count, count < 0 ? "" : String(decoding: buffer[..<count], as: UTF8.self))
    case "write":
      let count = write(files[number(0)], text(1), text(1).utf8.count)
      return answer(count, "\(count)")
    case "write at":
      let count = pwrite(files[number(0)], text(2), text(2).utf8.count, off_t(number(1)))
      return answer(count, "\(count)")
    case "set flags": return answer(clx_fcntl(files[number(0)], F_SETFL, number(1)))
    case "ftruncate": return answer(ftruncate(files[number(0)], off_t(number(1))))
    case "fallocate":
      return answer(clx_fallocate(files[number(0)], Int32(number(1)), off_t(number(2)), off_t(number(3))))
    case "copy range":
      // Within one file: from, to, how much.
      var from = off_t(number(1))
      var to = off_t(number(2))
      return answer(clx_copy_file_range(files[number(0)], &from, files[number(0)], &to, number(3), 0))
    case "fsync": return answer(fsync(files[number(0)]))
    case "syncfs": return answer(clx_syncfs(files[number(0)]))
    case "map":
      // Shared, for reading and writing, or privately for reading.
      mapSize = number(1)
      let isPrivate = text(2) == "private"
      let memory = mmap(
        nil, mapSize, isPrivate ? PROT_READ : PROT_READ | PROT_WRITE, isPrivate ? MAP_PRIVATE : MAP_SHARED,
        files[number(0)], 0)
      guard memory != MAP_FAILED else { return answer(-1) }
      map = memory
      return "ok"
    case "store":
      map?.storeBytes(of: UInt8(truncatingIfNeeded: number(1)), toByteOffset: number(0), as: UInt8.self)
      return "ok"
    case "load":
      return answer(0, map.map { "\($0.load(fromByteOffset: number(0), as: UInt8.self))" } ?? "")
    case "unmap":
      defer { map = nil }
      return answer(munmap(map, mapSize))
    case "open many":
      // As many as there are, in a directory: how many could be opened, and what stood against the others.
      var errors: [Int32: Int] = [:]
      for index in 0..<number(1) {
        let file = clx_open("\(text(0))/\(index)", O_RDWR | O_CREAT, 0o644)
        if file >= 0 { files.append(file) } else { errors[errno, default: 0] += 1 }
      }
      let failures = errors.map { "\($0.key)=\($0.value)" }.sorted().joined(separator: " ")
      return "ok\t\(files.count)\t\(failures)"
    default: return nil
    }
  }

  private func runLocks(_ name: String, _ text: (Int) -> String, _ number: (Int) -> Int) -> String? {
    switch name {
    case "alarm":
      // In so many milliseconds whatever is waited for is interrupted.
      var action = sigaction()
      action.__sigaction_handler.sa_handler = { _ in }
      sigaction(SIGALRM, &action, nil)
      var timer = itimerval()
      timer.it_value.tv_usec = number(0) * 1000
      return answer(setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &timer, nil))
    case "flock": return answer(flock(files[number(0)], Int32(number(1))))
    case "lock":
      // Style, file, kind, start, length.
      let command =
        switch text(0) {
        case "posix": F_SETLK
        case "posix wait": F_SETLKW
        case "ofd": CLX_F_OFD_SETLK
        case "ofd wait": CLX_F_OFD_SETLKW
        default: complain("no such lock: \(text(0))")
        }
      var lock = Glibc.flock()
      lock.l_type = Int16(number(2))
      lock.l_whence = Int16(SEEK_SET)
      lock.l_start = off_t(number(3))
      lock.l_len = off_t(number(4))
      return answer(clx_fcntl_lock(files[number(1)], Int32(command), &lock))
    default: return nil
    }
  }
}
