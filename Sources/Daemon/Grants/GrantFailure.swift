// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// Why something was not granted, or not taken back.
enum GrantFailure: Error {
  case store(StoreError)
  case app(AppFailure)
  case malformed
  case othersGrants
  case refused(GrantRefusal, path: String, app: String)
  case errno(Errno, path: String, writing: Bool)
  case onlyReads(app: String)
  case noGrant(path: String?, app: String?)

  var errno: Errno? {
    switch self {
    case .store, .app, .noGrant: nil
    case .malformed: .EINVAL
    case .othersGrants, .refused, .onlyReads: .EPERM
    case .errno(let errno, _, _): errno
    }
  }

  var message: String {
    switch self {
    case .store(let error): error.description
    case .app(let failure): "\(failure)"
    case .malformed: "something is missing from the request"
    case .othersGrants: "only root may grant something for another user"
    case .refused(let refusal, let path, let app): Self.sentence(refusal, "/\(path)", app)
    case .errno(let errno, let path, let writing): Self.sentence(errno, "/\(path)", writing)
    case .onlyReads(let app):
      "\(app) only reads what is chosen for it: its signature says so "
        + "(com.apple.security.files.user-selected.read-only); leave '--read-write' out"
    case .noGrant(let path?, let app):
      "\(app ?? "no app") was not granted /\(path); "
        + "'insula grants\(app.map { " \($0)" } ?? "")' lists what was"
    case .noGrant(nil, let app): "\(app ?? "no app") was not granted anything"
    }
  }

  private static func sentence(_ refusal: GrantRefusal, _ path: String, _ app: String) -> String {
    switch refusal {
    case .noPath:
      "\(path) is no path that can be granted: it is too long, or has a name that nothing can have"
    case .tooMuch:
      "\(path) holds more than one user's or one app's own things, so it is not granted as a whole; "
        + "grant the folders in it that are meant"
    case .system: "\(path) belongs to the system domain, which every app can read and none can change"
    case .otherApp:
      "\(path) is another app's own; of that, only what is in its Documents can be granted"
    case .group:
      "\(path) belongs to a group of apps; "
        + "which apps are in it, their signatures say, and it can't be granted"
    case .own: "\(path) is in \(app)'s own container, which it has anyway"
    }
  }

  private static func sentence(_ errno: Errno, _ path: String, _ writing: Bool) -> String {
    switch errno {
    case .ENOENT, .ENOTDIR: "there is nothing at \(path)"
    case .ELOOP: "there is a symbolic link on the way to \(path); name what it leads to"
    case .ENXIO: "\(path) is neither a file nor a directory"
    case .EXDEV: "another filesystem is mounted on the way to \(path), which is not the tree's"
    case .EROFS: "\(path) is sealed: it belongs to an installed app or to the system domain"
    case .ESTALE: "\(path) is just being replaced; try it again"
    case .EACCES, .EPERM:
      "who may not \(writing ? "write" : "read") \(path) can't let an app do it; "
        + (writing ? "grant it with '--read-only', or " : "") + "see 'insula acl \(path)'"
    default: "can't look at \(path): \(errno.message)"
    }
  }
}

extension ControlReply {
  init(_ failure: GrantFailure) {
    switch failure {
    case .store(let error): self.init(error)
    case .app(let failure): self.init(failure)
    default: self.init(ok: false, errno: failure.errno?.code, message: failure.message)
    }
  }
}
