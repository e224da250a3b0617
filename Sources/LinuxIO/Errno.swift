// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// An error number of the kernel's, spelled as in the man pages.
package struct Errno: Error, Hashable, Sendable {
  /// The number, always positive.
  package let code: Int32

  /// Wraps an error number.
  package init(_ code: Int32) { self.code = code }

  /// What the last failed call of this thread left in `errno`.
  ///
  /// This is the only place that reads it.
  package static var last: Errno { Errno(errno) }

  /// The C library's sentence for it.
  package var message: String { String(cString: strerror(code)) }

  /// The same about a path that a person gave, with what to do.
  package var messageAboutPath: String {
    [.ENOENT, .ENOTDIR, .ELOOP, .ENAMETOOLONG].contains(self) ? message + "; check the path" : message
  }
}

extension Errno {
  /// What is never answered: the request waits first, for its user's consent or for what takes long
  /// (`PostponedRequest`).
  ///
  /// The kernel's own numbers end before it.
  package static let awaitsConsent = Errno(4095)
}

extension Errno: CustomStringConvertible {
  package var description: String { message }
}

/// Makes a system call; returns its result, or throws what `errno` says when that is negative.
///
/// In debug builds, tests can make the call fail: the point is named after its file and function (`Fault`).
@inline(__always)
@discardableResult
package func check<Value: SignedInteger>(
  _ call: @autoclosure () -> Value, file: StaticString = #fileID, function: StaticString = #function
) throws(Errno) -> Value {
  #if DEBUG
    if let error = Fault.next(file, function) { throw error }
  #endif
  let result = call()
  #if DEBUG
    Trap.at(.call)
  #endif
  guard result >= 0 else { throw Errno.last }
  return result
}

/// Like ``check(_:file:function:)``, and makes the call again for as long as a signal interrupts it.
@inline(__always)
@discardableResult
package func retrying<Value: SignedInteger>(
  file: StaticString = #fileID, function: StaticString = #function, _ call: () -> Value
) throws(Errno) -> Value {
  #if DEBUG
    if let error = Fault.next(file, function) { throw error }
  #endif
  while true {
    let result = call()
    #if DEBUG
      Trap.at(.call)
    #endif
    if result >= 0 { return result }
    let error = Errno.last
    if error != .EINTR { throw error }
  }
}

// Spelled as in C, against the naming rule: the names are what strace, man pages and tests use.
// swift-format-ignore: AlwaysUseLowerCamelCase
extension Errno {
  package static let EPERM = Errno(Glibc.EPERM)
  package static let ENOENT = Errno(Glibc.ENOENT)
  package static let EINTR = Errno(Glibc.EINTR)
  package static let EIO = Errno(Glibc.EIO)
  package static let ENXIO = Errno(Glibc.ENXIO)
  package static let E2BIG = Errno(Glibc.E2BIG)
  package static let EBADF = Errno(Glibc.EBADF)
  package static let EAGAIN = Errno(Glibc.EAGAIN)
  package static let ENOMEM = Errno(Glibc.ENOMEM)
  package static let EACCES = Errno(Glibc.EACCES)
  package static let EBUSY = Errno(Glibc.EBUSY)
  package static let ENOMEDIUM = Errno(Glibc.ENOMEDIUM)
  package static let EDQUOT = Errno(Glibc.EDQUOT)
  package static let EEXIST = Errno(Glibc.EEXIST)
  package static let EILSEQ = Errno(Glibc.EILSEQ)
  package static let EXDEV = Errno(Glibc.EXDEV)
  package static let ENODEV = Errno(Glibc.ENODEV)
  package static let ENOTDIR = Errno(Glibc.ENOTDIR)
  package static let EISDIR = Errno(Glibc.EISDIR)
  package static let EINVAL = Errno(Glibc.EINVAL)
  package static let ENFILE = Errno(Glibc.ENFILE)
  package static let EMFILE = Errno(Glibc.EMFILE)
  package static let ENOTTY = Errno(Glibc.ENOTTY)
  package static let ETXTBSY = Errno(Glibc.ETXTBSY)
  package static let EFBIG = Errno(Glibc.EFBIG)
  package static let ENOSPC = Errno(Glibc.ENOSPC)
  package static let EROFS = Errno(Glibc.EROFS)
  package static let EPIPE = Errno(Glibc.EPIPE)
  package static let ETIMEDOUT = Errno(Glibc.ETIMEDOUT)
  package static let ENOTBLK = Errno(Glibc.ENOTBLK)
  package static let EADDRINUSE = Errno(Glibc.EADDRINUSE)
  package static let ERANGE = Errno(Glibc.ERANGE)
  package static let ENOLCK = Errno(Glibc.ENOLCK)
  package static let EDEADLK = Errno(Glibc.EDEADLK)
  package static let ENAMETOOLONG = Errno(Glibc.ENAMETOOLONG)
  package static let ENOSYS = Errno(Glibc.ENOSYS)
  package static let ENOTEMPTY = Errno(Glibc.ENOTEMPTY)
  package static let ELOOP = Errno(Glibc.ELOOP)
  package static let ENODATA = Errno(Glibc.ENODATA)
  package static let EOPNOTSUPP = Errno(Glibc.EOPNOTSUPP)
  package static let EBADMSG = Errno(Glibc.EBADMSG)
  package static let ENOKEY = Errno(Glibc.ENOKEY)
  package static let EKEYREJECTED = Errno(Glibc.EKEYREJECTED)
  package static let ENOTCONN = Errno(Glibc.ENOTCONN)
  package static let EREMOTE = Errno(Glibc.EREMOTE)
  package static let ESTALE = Errno(Glibc.ESTALE)
  package static let EOVERFLOW = Errno(Glibc.EOVERFLOW)
  package static let ESRCH = Errno(Glibc.ESRCH)
  package static let ECONNREFUSED = Errno(Glibc.ECONNREFUSED)
  package static let ECONNRESET = Errno(Glibc.ECONNRESET)
  package static let ECONNABORTED = Errno(Glibc.ECONNABORTED)
  package static let ECANCELED = Errno(Glibc.ECANCELED)
  package static let EAFNOSUPPORT = Errno(Glibc.EAFNOSUPPORT)
  package static let EPROTONOSUPPORT = Errno(Glibc.EPROTONOSUPPORT)
}
