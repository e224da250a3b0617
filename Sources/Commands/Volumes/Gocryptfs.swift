// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

/// gocryptfs, the program that encrypts volumes.
struct Gocryptfs {
  private let program: String
  private let context: Context

  init(_ context: Context) throws {
    guard let program = Requirements.find("gocryptfs", context) else {
      throw CommandFailure(
        .failed, "gocryptfs is missing, which encrypts volumes; install it ('apt-get install gocryptfs')")
    }
    (self.program, self.context) = (program, context)
  }

  /// Prepares an empty directory for encrypted files.
  func prepare(_ directory: SharedFD, for password: VolumePassword) throws {
    let input = try password.pipe()
    let output = try pipe()
    let number: Int32 = 3
    let words = [program, "-init", "-q", "-nosyslog", "--", "/proc/self/fd/\(number)"]
    let descriptors: [(from: FD, to: Int32)] = [
      (FD(input.number), STDIN_FILENO), (output.write.fd, STDOUT_FILENO), (output.write.fd, STDERR_FILENO),
      (FD(directory.number), number),
    ]
    let pid = try Subprocess.spawn(program, words, context, descriptors: descriptors)
    let said = output.takeRead()
    let text = String(decoding: try said.fd.readToEnd(limit: 1 << 12), as: UTF8.self)
    guard try Subprocess.wait(pid) != .exited(0) else { return }
    let lines = text.split(whereSeparator: \.isNewline).suffix(5).map {
      "  gocryptfs: \(String($0).sanitized)"
    }
    throw CommandFailure(.failed, "the directory can't be prepared for encrypted files", lines: lines)
  }
}

/// The directory in which the encrypted files of a new volume are to be.
struct EncryptedPlace {
  let path: String
  let directory: SharedFD
  private let parent: SharedFD
  private let isMade: Bool

  /// It is made, or is empty.
  init(_ path: String, _ context: Context) throws {
    var isMade = true
    do throws(Errno) {
      let (above, name) = path.splitAtName
      let parent = try context.openToMake(making: "/" + above)
      do throws(Errno) { try parent.fd.makeDirectory(name, mode: 0o700) } catch .EEXIST { isMade = false }
      let opened = isMade ? try parent.fd.openDirectory(name) : try context.openToMake(in: path)
      self.parent = SharedFD(parent)
      // Whoever comes later must not take away what is made here.
      guard flock(opened.fd.raw, LOCK_EX | LOCK_NB) == 0 else { throw .EBUSY }
      guard try opened.fd.entries().isEmpty else { throw .ENOTEMPTY }
      directory = SharedFD(opened)
    } catch {
      if error == .EBUSY {
        throw CommandFailure(error, "somebody else is making a volume in \(path.sanitized) just now")
      }
      if error == .ENOTEMPTY {
        throw CommandFailure(
          error,
          "\(path.sanitized) is not empty; '--in' names another directory for the encrypted files, and "
            + "'insula volume add --encrypted' adds what gocryptfs has encrypted before")
      }
      throw CommandFailure(error, "can't use \(path.sanitized): \(Context.words(ofMaking: error))")
    }
    (self.path, self.isMade) = (path, isMade)
  }

  /// Takes it away, of a volume that has come to nothing, with what gocryptfs has made there, if it has.
  func remove(isPrepared: Bool) {
    let made = [EncryptedFiles.configuration, "gocryptfs.conf.tmp", EncryptedFiles.vector]
    for name in made where isPrepared { try? FD(directory.number).remove(name, directory: false) }
    if isMade { try? FD(parent.number).remove(path.splitAtName.name, directory: true) }
  }
}
