// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// Why a store can't be made, opened or changed.
package enum StoreError: Error, Equatable, Sendable {
  case notThere(path: String)
  case notAStore(path: String, reason: String)
  case halfMade(path: String)
  case damaged(path: String, what: String)
  case newerFormat(path: String, found: Int, known: Int)
  case olderFormat(path: String, found: Int, known: Int)
  case inUse(path: String, holder: StoreHolder?)
  case belongsToOther(path: String, uid: UInt32)
  case alreadyAStore(path: String)
  case notEmpty(path: String)
  case noSpace(path: String)
  case readOnly(path: String)
  case notPermitted(doing: String, path: String)
  case failed(doing: String, path: String, errno: Errno)

  case badHomeName(name: String, reason: String)
  case unknownAccount(name: String)
  case otherAccount(name: String)
  case homeExists(path: String)
  case noHome(path: String)

  case registryBusy(path: String)
  case registryDamaged(path: String, what: String)
  case registryNewer(path: String, found: Int, known: Int)
  case registryFailed(doing: String, path: String, message: String)
  case appExists(identifier: String, path: String)
  case noApp(identifier: String)
  case appBusy(identifier: String)
  case noContainer(path: String, what: String)
  case notEntitled(identifier: String, to: String, has: [String])
  case tooManyGrants(identifier: String)
  case tooManyGrantsOfUser(user: UInt32)
  case teamOfOtherRoot(team: String, known: String, new: String)
  case containerOfOtherTeam(path: String, team: String, other: String)

  /// Gives an errno its meaning: `doing` reads as in "can't open".
  package init(_ errno: Errno, doing: String, path: String) {
    self =
      switch errno {
      case .ENOSPC, Errno(122): .noSpace(path: path)
      case .EROFS: .readOnly(path: path)
      case .EACCES, .EPERM: .notPermitted(doing: doing, path: path)
      default: .failed(doing: doing, path: path, errno: errno)
      }
  }
}

/// Runs calls of one purpose; an errno becomes an error that says what was being done, and to what.
func explaining<Result: ~Copyable>(
  _ doing: String, _ path: String, _ body: () throws(Errno) -> Result
) throws(StoreError) -> Result {
  do throws(Errno) { return try body() } catch { throw StoreError(error, doing: doing, path: path) }
}

extension StoreError: CustomStringConvertible {
  /// What failed, on which path, and what to do.
  package var description: String {
    switch self {
    case .notThere(let path):
      "there is no store at \(path); make one with 'insula init \(path)'"
    case .notAStore(let path, let reason):
      "\(path) is not a store (\(reason)); "
        + "name the directory that 'insula init' made, or make a new one with it"
    case .halfMade(let path):
      "the store \(path) is half-made: an 'insula init' was stopped before it was done; "
        + "nothing is in it yet, run 'insula init \(path)' again to finish it"
    case .damaged(let path, let what):
      "the store \(path) is damaged: \(what); "
        + "restore store.plist from a backup, the tree beside it is untouched"
    case .newerFormat(let path, let found, let known):
      "the store \(path) has format \(found), this insula knows formats up to \(known); "
        + "use the newer insula that made it"
    case .olderFormat(let path, let found, let known):
      "the store \(path) has format \(found), which this insula (format \(known)) can't migrate; "
        + "use the insula that made it"
    case .inUse(let path, let holder):
      "the store \(path) is in use by \(holder?.description ?? "another insula"); "
        + "unmount it first (\(holder?.unmountCommand ?? "'insula unmount'"))"
    case .belongsToOther(let path, let uid):
      "the store \(path) belongs to \(Account.numbered(uid)?.name ?? "uid \(uid)"); "
        + "use it as that user, or make your own with 'insula init'"
    case .alreadyAStore(let path):
      "\(path) is a store already, nothing was changed; mount it with 'insula mount \(path)'"
    case .notEmpty(let path):
      "\(path) is not empty, nothing was changed; name a new or an empty directory"
    case .noSpace(let path):
      "no space left for \(path); free some on its filesystem ('df -h', 'df -i', 'quota') and try again"
    case .readOnly(let path):
      "\(path) lies on a filesystem that is mounted read-only; remount that writable, "
        + "or mount the store with 'insula mount -o ro'"
    case .notPermitted(let doing, let path):
      "can't \(doing) \(path): not permitted; "
        + "run as the owner of the store (root for the machine's own store)"
    case .failed(let doing, let path, let errno):
      "can't \(doing) \(path): \(errno.message)"
    case .badHomeName(let name, let reason):
      "'\(name)' can't be the name of a home: \(reason)"
    case .unknownAccount(let name):
      "this machine has no account '\(name)'; "
        + "make the account first (adduser), or check the spelling with 'getent passwd'"
    case .otherAccount(let name):
      "a rootless store holds its owner's home only, and '\(name)' is someone else; "
        + "a store for all users is made by root ('sudo insula init')"
    case .homeExists(let path):
      "the home \(path) exists already, nothing was changed; 'insula user list' shows the homes"
    case .noHome(let path):
      "there is no home \(path); 'insula user add' makes one, and 'insula user list' shows those there are"
    case .registryBusy(let path):
      "another process is changing \(path) and does not end; "
        + "try it again, or see who it is with 'fuser -v \(path)'"
    case .registryDamaged(let path, let what):
      "the list of apps \(path) is damaged: \(what); restore that file from a backup, "
        + "the apps and their containers are untouched"
    case .registryNewer(let path, let found, let known):
      "the list of apps \(path) has version \(found), this insula knows versions up to \(known); "
        + "use the newer insula that made it"
    case .registryFailed(let doing, let path, let message):
      "can't \(doing) the list of apps \(path): \(message)"
    case .appExists(let identifier, let path):
      "\(identifier) is installed already, at \(path), nothing was changed; 'insula apps' lists all apps"
    case .noApp(let identifier):
      "no app \(identifier) is installed here; 'insula apps' lists all apps"
    case .appBusy(let identifier):
      "\(identifier) is just being installed, updated or removed; try it again when that is done"
    case .noContainer(let path, let what):
      "\(path) can't be a container: \(what); move it away and try again"
    case .notEntitled(let identifier, let to, let has):
      "\(identifier) is not entitled to \(to); "
        + (has.isEmpty ? "it has no such entitlement" : "it is to \(has.joined(separator: ", "))")
    case .teamOfOtherRoot(let team, let known, let new):
      "the team \(team) is the root \(known)'s here, and this is "
        + "signed under another root, \(new), nothing was changed; if that "
        + "one speaks for the team from now on: "
        + "'insula trust add FILE --team \(team) --store STORE' with its certificate"
    case .containerOfOtherTeam(let path, let team, let other):
      "the container \(path) has the data of apps of the team \(other), "
        + "and this app is of the team \(team); 'insula uninstall' "
        + "with the identifier of such an app removes what it has left; "
        + "what is in iCloud is yours to move elsewhere, and to remove"
    case .tooManyGrants(let identifier):
      "so much has been granted to \(identifier) that there is no room for more; "
        + "grant it the folder that these files are in, and see 'insula grants'"
    case .tooManyGrantsOfUser(let user):
      "the user with the number \(user) has granted as much as one user can; "
        + "grant folders instead of the files in them, or take something back: see 'insula grants'"
    }
  }
}

extension StoreError {
  /// Whether a user has granted as much as one can.
  package var isTooManyGrants: Bool {
    switch self {
    case .tooManyGrants, .tooManyGrantsOfUser: true
    default: false
    }
  }

  /// What kind of failure it is; commands have an exit code for each.
  package enum Kind: String, Sendable {
    case noStore, wrongFormat, busy, notPermitted, usage, noApp, failed
  }

  package var kind: Kind {
    switch self {
    case .notThere, .notAStore, .halfMade, .damaged, .registryDamaged: .noStore
    case .newerFormat, .olderFormat, .registryNewer: .wrongFormat
    case .inUse, .appBusy, .registryBusy: .busy
    case .belongsToOther, .notPermitted, .otherAccount, .notEntitled: .notPermitted
    case .badHomeName: .usage
    case .noApp: .noApp
    case .alreadyAStore, .notEmpty, .noSpace, .readOnly, .failed, .unknownAccount, .homeExists, .noHome,
      .registryFailed, .appExists, .noContainer, .tooManyGrants,
      .tooManyGrantsOfUser, .teamOfOtherRoot, .containerOfOtherTeam:
      .failed
    }
  }
}
