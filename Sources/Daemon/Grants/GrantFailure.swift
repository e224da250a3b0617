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
  case othersGrants
  case refused(GrantRefusal, path: String, app: String)
  case errno(Errno, path: String, writing: Bool)
  case onlyReads(app: String)
  case noGrant(path: String?, app: String?)
  /// Another team's app than the one that was meant has its identifier by now.
  case otherTeam(app: String)
  /// It is taken back, but the next daemon would give it again.
  case revocationNotRecorded(StoreError)

  var errno: Errno? {
    switch self {
    case .store, .app, .noGrant, .otherTeam, .revocationNotRecorded: nil
    case .othersGrants, .refused, .onlyReads: .EPERM
    case .errno(let errno, _, _): errno
    }
  }

  var message: String {
    switch self {
    case .store(let error): error.description
    case .app(let failure): "\(failure)"
    case .othersGrants: "only root may create grants for another user"
    case .refused(let refusal, let path, let app): Self.sentence(refusal, "/\(path)", app)
    case .errno(let errno, let path, let writing): Self.sentence(errno, "/\(path)", writing)
    case .onlyReads(let app):
      "the signature of \(app) allows only read-only grants "
        + "(com.apple.security.files.user-selected.read-only); leave out '--read-write'"
    case .noGrant(let path?, let app):
      "\(app ?? "no app") has no grant for /\(path); "
        + "'insula grants\(app.map { " \($0)" } ?? "")' lists the grants"
    case .noGrant(nil, let app): "\(app ?? "no app") has no grants"
    case .otherTeam(let app):
      "another team's \(app) has been installed meanwhile, so nothing was granted; 'insula grant' grants it "
        + "to that one"
    case .revocationNotRecorded(let error):
      "the grant is revoked in this mount, but that can't be recorded, so the grant would be back after the "
        + "next mount: \(error); then run this command again"
    }
  }

  private static func sentence(_ refusal: GrantRefusal, _ path: String, _ app: String) -> String {
    switch refusal {
    case .noPath:
      "\(path) can't be granted: the path is too long, or a name in it is not valid"
    case .tooMuch:
      "\(path) has data of more than one user or app, so it can't be granted as a whole; "
        + "grant individual folders in it"
    case .system: "\(path) is in the system domain, which every app can read and no app can change"
    case .otherApp:
      "\(path) is data of another app, of which only its Documents can be granted"
    case .group:
      "\(path) is data of a group of apps and can't be granted; "
        + "the apps' signatures determine the members of the group"
    case .own: "\(path) is in \(app)'s own container, which it can use anyway"
    }
  }

  private static func sentence(_ errno: Errno, _ path: String, _ writing: Bool) -> String {
    switch errno {
    case .ENOENT, .ENOTDIR: "\(path) does not exist"
    case .ELOOP: "\(path) contains a symbolic link; give the path that it leads to"
    case .ENXIO: "\(path) is neither a file nor a directory"
    case .EXDEV: "another filesystem is mounted on the path \(path), which is not part of the tree"
    case .EROFS:
      "\(path) is read-only: it belongs to an installed app, to the system domain or to a read-only volume"
    case .ESTALE: "\(path) is being replaced; try again"
    case .EACCES, .EPERM:
      "you can't let an app \(writing ? "write" : "read") \(path), because you may not do so yourself; "
        + (writing ? "grant it with '--read-only', or " : "") + "see 'insula acl \(path)'"
    default: "can't examine \(path): \(errno.message)"
    }
  }
}

extension ControlFailure {
  init(_ failure: GrantFailure) {
    switch failure {
    case .store(let error): self.init(error)
    case .app(let failure): self.init(failure)
    default: self.init(failure.message, failure.errno.map(Cause.errno) ?? .unspecified)
    }
  }
}
