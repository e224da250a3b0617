// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO

/// Puts copies of an app's files into its user's photo library.
///
/// It has all rights of the user's, and does what an app says. So it goes down from what the app has as its
/// home, name by name and over no link, copies regular files alone, and tells nothing of what is in the
/// library.
struct PhotoIntake {
  private let tree: TreePlace
  /// What names are made of that nobody else can foretell; the same as long as the app runs.
  private let secret: UInt64

  init(_ tree: TreePlace, secret: UInt64) {
    self.tree = tree
    self.secret = secret
  }

  /// More is not copied before the daemon loses its patience.
  static let mostBytes: Int64 = 4 << 30

  /// `mayAdd` is asked directly before the photo gets its name.
  func answer(_ task: AddingTask, mayAdd: () -> Bool) -> AgentAnswer {
    do throws(PhotoRefusal) {
      let photo = try source(task)
      let status = try Self.checked(photo.fd).status
      try add(photo.fd, status, task, mayAdd)
      return .added
    } catch {
      return .notAdded(error.message, errno: error.cause.code)
    }
  }

  /// Opens the app's file.
  private func source(_ task: AddingTask) throws(PhotoRefusal) -> OwnedFD {
    let path = task.photo.file.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map(Array.init)
    do throws(Errno) {
      guard path.allSatisfy(Self.isName) else { throw .EINVAL }
      let data = try tree.directory(at: task.data.parts(between: "/").map(String.init))
      return try ItemFiles.open(path, in: data.fd)
    } catch {
      let words = error == .EINVAL ? "it is no regular file in the app's home" : error.message
      throw PhotoRefusal("can't read the file: \(words)", error)
    }
  }

  private static func isName(_ bytes: [UInt8]) -> Bool {
    !bytes.isEmpty && !bytes.contains(0) && bytes != Array(".".utf8) && bytes != Array("..".utf8)
  }

  /// Finds out whether a file is one to be added.
  private static func checked(_ photo: FD) throws(PhotoRefusal) -> (status: FileStatus, type: PhotoType) {
    let (status, bytes): (FileStatus, [UInt8])
    do throws(Errno) {
      status = try photo.status()
      bytes = try photo.beginning(PhotoType.beginning)
    } catch {
      throw PhotoRefusal("can't read the file: \(error.message)", error)
    }
    guard status.st_size <= mostBytes else {
      throw PhotoRefusal("the file is longer than \(mostBytes >> 30) GiB", .EFBIG)
    }
    guard let type = PhotoType(beginning: bytes) else {
      throw PhotoRefusal("the file is neither a photo nor a video of a known type", .EINVAL)
    }
    return (status, type)
  }

  /// Nothing that is in the library has to do with it, so no collision tells an app of another photo; and
  /// when the same call is made again, it is the same.
  private func name(_ photo: AddedPhoto) -> String {
    guard let token = photo.token else { return UUIDText.random() }
    return UUIDText.made(of: hash(token, 0), hash(token, 1))
  }

  private func hash(_ token: String, _ part: Int) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(secret)
    hasher.combine(part)
    hasher.combine(token)
    return UInt64(UInt(bitPattern: hasher.finalize()))
  }

  /// What counts is what the copy is: the app may change its file at any time.
  private func add(
    _ photo: FD, _ status: FileStatus, _ task: AddingTask, _ mayAdd: () -> Bool
  ) throws(PhotoRefusal) {
    var refusal: PhotoRefusal?
    do throws(Errno) {
      let home = try tree.home(task.home)
      let library = try PhotoLibrary(in: home.fd)
      try library.add(photo, status, named: name(task.photo)) { (copy) throws(Errno) in
        do throws(PhotoRefusal) {
          let type = try Self.checked(copy).type
          guard mayAdd() else { throw PhotoRefusal("it is not wanted any more", .ECANCELED) }
          return type.fileExtension(for: task.photo.file)
        } catch {
          refusal = error
          throw error.cause
        }
      }
    } catch {
      throw refusal ?? Self.refusal(of: photo, status, error)
    }
  }

  /// In what state the library is, is nothing that an app is told; that the disk is full, it sees anyway.
  private static func refusal(of photo: FD, _ before: FileStatus, _ error: Errno) -> PhotoRefusal {
    guard let now = try? photo.status(), FileStamp(now) == FileStamp(before) else {
      return PhotoRefusal("the file was changed while it was copied", .EBUSY)
    }
    guard [.ENOSPC, .EDQUOT].contains(error) else {
      return PhotoRefusal("the photo library can't be written to", .EIO)
    }
    return PhotoRefusal("can't write to the photo library: \(error.message)", error)
  }
}

extension FD {
  /// The first bytes of a file, wherever it was read to.
  fileprivate func beginning(_ count: Int) throws(Errno) -> [UInt8] {
    try withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { (room) throws(Errno) in
      Array(room[..<(try read(into: room, at: 0))])
    }
  }
}

/// Why a photo is not added.
struct PhotoRefusal: Error {
  let message: String
  let cause: Errno

  init(_ message: String, _ cause: Errno) {
    self.message = message
    self.cause = cause
  }
}
