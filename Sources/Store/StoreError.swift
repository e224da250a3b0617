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
  /// Another machine has it, as far as is known which one.
  case leased(path: String, host: String?)
  case belongsToOther(path: String, uid: UInt32)
  /// Others can put another store in its place.
  case exchangeable(path: String, finding: StoreDoorFinding)
  case alreadyAStore(path: String)
  case notEmpty(path: String)
  case noSpace(path: String)
  case readOnly(path: String)
  /// What is read-only is our own mount of it.
  case mountedReadOnly
  case notPermitted(doing: String, path: String)
  case failed(doing: String, path: String, errno: Errno)

  case badHomeName(name: String, reason: String)
  case unknownAccount(name: String)
  case otherAccount(name: String)
  case homeExists(path: String)
  case noHome(path: String)
  /// It is on a disk or a server that is not there.
  case homeIsAway(path: String)
  /// It is away, and may be that user's.
  case homeOwnerUnknown(user: UInt32, path: String)
  /// Another store has removed it, or does so.
  case homeIsGone(name: String)
  /// Others can make or change homes there.
  case homesOfOthers(path: String)
  case notAdoptable(path: String, reasons: [String])

  case libraryMissing(reason: String)
  case registryBusy(path: String)
  case registryDamaged(path: String, what: String)
  /// Somebody else can change what lies at `path`: its owner, or with none others than its owner.
  case registryOfOthers(path: String, owner: UInt32?)
  case registryNewer(path: String, found: Int, known: Int)
  case registryOlder(path: String)
  /// The daemon serves files alone, since it can't read the registry any more.
  case appsUnknown(Kind, reason: String)
  case registryFailed(doing: String, path: String, message: String)
  case appExists(identifier: String, path: String)
  case noApp(identifier: String)
  case appBusy(identifier: String)
  case noContainer(path: String, what: String)
  case notEntitled(identifier: String, to: String, has: [String])
  case tooManyGrants(identifier: String)
  case tooManyGrantsOfUser(user: UInt32)
  case tooManyChoices(limit: Int)
  case tooManyApps(user: UInt32, limit: Int)
  case tooManyContainers(user: UInt32, limit: Int)
  case tooManyGroups(user: UInt32, limit: Int)
  case tooManyConsents(user: UInt32, limit: Int)
  /// It was given to an account besides its own.
  case additionalID(user: UInt32, account: UInt32)
  /// Nothing is noted of one.
  case noEjectedHome(name: String)
  /// They were ejected from different places, and none of these was named.
  case severalEjectedHomes(name: String, sources: [String])
  /// What was decided under it is another account's, which has another number by now.
  case numberOfOther(user: UInt32, name: String, number: UInt32)
  case numberOfFormer(user: UInt32, name: String)
  case teamOfOtherRoot(team: String, known: String, new: String)
  case appOfFormerRoot(identifier: String, team: String)
  case containerOfOtherTeam(path: String, identifier: String, home: String, team: String, other: String)
  /// Another app than the one that was meant has it by now, or none.
  case containerOfOther(path: String, identifier: String)
  case containerOfOtherSpelling(path: String)
  case containerStays(path: String, reason: String)
  case noRemovedContainer(number: Int64)
  case containerIsThere(path: String)
  case restrained(path: String, reason: String)

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
      "there is no store at \(path); create one with 'insula init \(path)'"
    case .notAStore(let path, let reason):
      "\(path) is not a store (\(reason)); "
        + "name a directory that 'insula init' created, or create a store with it"
    case .halfMade(let path):
      "the store \(path) is incomplete: an 'insula init' was interrupted; "
        + "it is still empty; run 'insula init \(path)' again to complete it"
    case .damaged(let path, let what):
      "the store \(path) is damaged: \(what); "
        + "restore store.plist from a backup; the tree beside it is not affected"
    case .newerFormat(let path, let found, let known):
      "the store \(path) has format \(found), but this insula knows formats only up to \(known); "
        + "use the newer insula that made it"
    case .olderFormat(let path, let found, let known):
      "the store \(path) has format \(found), which this insula (format \(known)) can't migrate; "
        + "use the insula that made it"
    case .inUse(let path, let holder):
      "the store \(path) is in use by \(holder?.description ?? "another insula"); "
        + "unmount it first (\(holder?.unmountCommand ?? "'insula unmount'"))"
    case .leased(let path, let host):
      "the store \(path) is in use on \(host ?? "another machine"); unmount it there first "
        + "('insula unmount'); if that machine is gone, try again in a minute"
    case .belongsToOther(let path, let uid):
      "the store \(path) belongs to \(Account.numbered(uid)?.name ?? "uid \(uid)"); "
        + "use it as that user, or create your own with 'insula init'"
    case .exchangeable(let path, let finding):
      "the store \(path) is not used: \(finding.path) \(finding.words); \(finding.advice)"
    case .alreadyAStore(let path):
      "\(path) is already a store; nothing was changed; mount it with 'insula mount \(path)'"
    case .notEmpty(let path):
      "\(path) is not empty; nothing was changed; name a new or an empty directory"
    case .noSpace(let path):
      "no space left for \(path); free some space on its filesystem ('df -h', 'df -i', 'quota') and try again"
    case .readOnly(let path):
      "\(path) is on a filesystem that is mounted read-only; remount it read-write, "
        + "or mount the store with 'insula mount -o ro'"
    case .mountedReadOnly: "the store is mounted read-only; mount it read-write first"
    case .notPermitted(let doing, let path):
      "can't \(doing) \(path): not permitted; "
        + "run this command as the owner of the store (root for the machine's store)"
    case .failed(let doing, let path, let errno):
      "can't \(doing) \(path): \(errno.messageAboutPath)"
    case .badHomeName(let name, let reason):
      "'\(name)' can't be the name of a home: \(reason)"
    case .unknownAccount(let name):
      "this machine has no account '\(name)'; "
        + "create the account first (adduser), or check the spelling with 'getent passwd'"
    case .otherAccount(let name):
      "a rootless store has only its owner's home, and '\(name)' is another user; "
        + "root can create a store for all users ('sudo insula init')"
    case .homeExists(let path):
      "the home \(path) already exists; nothing was changed; 'insula user list' lists the homes, "
        + "and with --adopt an account takes over one that was put there"
    case .notAdoptable(let path, let reasons):
      "the home \(path) can't be adopted: \(reasons.joined(separator: "; ")); "
        + "nothing was changed; move that away, and try again"
    case .noHome(let path):
      "there is no home \(path); 'insula user add' creates one, and 'insula user list' lists the homes"
    case .homeIsAway(let path):
      "the home \(path) is on a disk or server that is not there now; mount the store, "
        + "and see 'insula volume list'"
    case .homeOwnerUnknown(let user, let path):
      "can't tell whether uid \(user) has a home, since \(path) is not there now and its owner is not known; "
        + "nothing was forgotten; mount the store with that disk or server ('insula volume list'), "
        + "or give that home up with 'insula volume eject'"
    case .homeIsGone(let name):
      "the home of \(name) was removed by another store; 'insula volume eject Users/\(name)' gives it up, "
        + "and then 'insula user add' makes a new one"
    case .homesOfOthers(let path):
      "others can change or read what is in \(path), so no home is safe there; it must belong to whoever "
        + "mounts the store (root for the machine's), and be closed to all others ('chmod 700')"
    case .libraryMissing(let reason):
      "can't load SQLite: \(reason)"
    case .registryBusy(let path):
      "another process is changing \(path) and does not finish; "
        + "try again, or find the process with 'fuser -v \(path)'"
    case .registryDamaged(let path, let what):
      "the list of apps \(path) is damaged: \(what); restore this file from a backup; "
        + "the apps and their containers are not affected"
    case .registryOfOthers(let path, let owner):
      "the list of apps is not used, because \(Self.who(owner)) can change \(path); if you trust what is in "
        + "it, correct that with \(Self.correction(of: path, owner))"
    case .registryNewer(let path, let found, let known):
      "the list of apps \(path) has version \(found), but this insula knows versions only up to \(known); "
        + "use the newer insula that made it"
    case .registryOlder(let path):
      "the list of apps \(path) is of an earlier insula, which may use it now, so this command does not "
        + "change it; unmount the store and mount it again, which brings the list up to date"
    case .appsUnknown(_, let reason):
      "the daemon serves this store without apps, volumes and homes on volumes: \(reason); once that is "
        + "done, 'insula restart' brings them back, without unmounting the store"
    case .registryFailed(let doing, let path, let message):
      "can't \(doing) the list of apps \(path): \(message)"
    case .appExists(let identifier, let path):
      "\(identifier) is already installed at \(path); nothing was changed; 'insula apps' lists all apps"
    case .noApp(let identifier):
      "the app \(identifier) is not installed here; 'insula apps' lists all apps"
    case .appBusy(let identifier):
      "\(identifier) is being installed, updated or removed; try again when this is done"
    case .noContainer(let path, let what):
      "\(path) can't be a container: \(what); move it away and try again"
    case .notEntitled(let identifier, let to, let has):
      "\(identifier) is not entitled to \(to); "
        + (has.isEmpty ? "it has no such entitlement" : "it is entitled to \(has.joined(separator: ", "))")
    case .teamOfOtherRoot(let team, let known, let new):
      "the team \(team) is assigned to the root \(known) here, but this is "
        + "signed under another root, \(new); nothing was changed; to assign the team to "
        + "the new root, run 'insula trust add FILE --team \(team) --store STORE' with its certificate"
    case .appOfFormerRoot(let identifier, let team):
      "\(identifier) was signed under another root than the one to which the team \(team) is assigned now, "
        + "so it can't have what was granted to the team's app; update it to a version that is signed under "
        + "that root"
    case .noRemovedContainer(let number):
      "there is no removed container with the number \(number); 'insula removed list' lists them"
    case .containerIsThere(let path):
      "nothing was restored: there is a container \(path) by now; uninstall its app first, which removes "
        + "that container, or keep it and leave the removed one where it is"
    case .containerOfOtherTeam(let path, let identifier, let home, let team, let other):
      "the container \(path) has data of apps of the team \(other), but this app is of the team \(team); "
        + "if no app of \(other) that uses it is installed any more, "
        + "'insula uninstall \(identifier) --user \(home)' removes the container, and "
        + "'insula removed restore' puts it back for some days"
    case .containerOfOther(let path, let identifier):
      "the container \(path) is no more that of the app that was meant: \(identifier) was removed or "
        + "installed anew meanwhile; nothing was changed; see whose it is now with "
        + "'insula info \(identifier)', and run the command again if that app is to have the data"
    case .containerStays(let path, let reason):
      "the container \(path) of an app that was uninstalled is still there: \(reason); "
        + "remove what keeps it ('insula flags' shows and changes flags), and start the app again"
    case .restrained(let path, let reason):
      "can't change \(path), since \(reason); 'insula flags' shows and changes flags"
    case .containerOfOtherSpelling(let path):
      "there is a container beside \(path) whose name differs by case alone, which is the same name in this "
        + "store; uninstall the app whose container that is, or rename it in the store while that is "
        + "unmounted"
    case .tooManyGrants(let identifier):
      "\(identifier) has as many grants as an app can have; "
        + "grant a folder instead of the files in it, or revoke grants (see 'insula grants')"
    case .tooManyGrantsOfUser(let user):
      "uid \(user) has as many grants as a user can have; "
        + "grant folders instead of the files in them, or revoke grants (see 'insula grants')"
    case .tooManyChoices(let limit):
      "you have chosen apps for \(limit) types, which is as many as you can; "
        + "take choices back with 'insula handlers TYPE --reset'"
    case .tooManyApps(let user, let limit):
      "uid \(user) has \(limit) apps, which is as many as a user can have; uninstall apps first "
        + "('insula apps' lists them), or have an administrator install the app for everyone"
    case .tooManyContainers(let user, let limit):
      "uid \(user) has \(limit) containers, which is as many as a user can have; remove what you don't need: "
        + "'insula uninstall ID' also removes the data that an uninstalled app has left and, with the "
        + "identifier of a container in iCloud (a folder in your Library/Mobile Documents, with dots instead "
        + "of '~') that no app uses any more, that container"
    case .tooManyGroups(let user, let limit):
      "the apps that uid \(user) has for themselves would be in more than \(limit) groups and iCloud "
        + "containers together; uninstall apps first ('insula apps' lists them), or have an administrator "
        + "install the app for everyone"
    case .additionalID(let user, let account):
      "uid \(user) is an additional ID of \(Self.who(account)) (/etc/subuid), for which no app runs, "
        + "so nothing is decided for it; run the command as that account"
    case .noEjectedHome(let name): "no home of \(name) was ejected"
    case .severalEjectedHomes(let name, let sources):
      "several homes of \(name) were ejected; '--source' names the one that is meant: "
        + sources.joined(separator: ", ")
    case .numberOfOther(let user, let name, let number):
      "what was decided for uid \(user) was decided by \(name), who has uid \(number) now; "
        + "run 'insula restart' as root, or mount the store again: then refusals follow \(name), and so does "
        + "what was allowed if a container in that account's home has the new number as well; it is "
        + "forgotten otherwise"
    case .numberOfFormer(let user, let name):
      "what was decided for uid \(user) was decided by \(name), which is no account any more; run 'insula "
        + "restart' or 'insula user add' as root, or mount the store again: then what was allowed is "
        + "forgotten"
    case .tooManyConsents(let user, let limit):
      "uid \(user) has decided \(limit) times about apps and private data, which is as often as a user can; "
        + "uninstall apps, or take decisions back with 'insula consent reset ID'"
    }
  }
}

extension StoreError {
  private static func who(_ owner: UInt32?) -> String {
    owner.map { Account.numbered($0)?.name ?? "uid \($0)" } ?? "others"
  }

  private static func correction(of path: String, _ owner: UInt32?) -> String {
    owner == nil ? "'chmod go-w \(path)'" : "'chown \(ProcessID.user) \(path)'"
  }

  /// What `insula check` says of a registry that others can change.
  var findingOfOthers: (path: String, problem: String, advice: String)? {
    guard case .registryOfOthers(let path, let owner) = self else { return nil }
    return (
      path, "can be changed by \(Self.who(owner)), so it is not used",
      "if you trust what is in it, run \(Self.correction(of: path, owner))"
    )
  }

  /// Whether a user has granted as much as one can.
  package var isTooManyGrants: Bool {
    switch self {
    case .tooManyGrants, .tooManyGrantsOfUser: true
    default: false
    }
  }

  /// Whether it may be over by itself: what lacks room, a disk that works, or somebody else's end.
  ///
  /// What was decided, by whomever, and what was counted is so until somebody does something about it.
  package var mayPass: Bool {
    switch self {
    case .noSpace, .readOnly, .mountedReadOnly, .failed, .inUse, .leased, .appBusy, .registryBusy,
      .registryFailed, .registryDamaged, .homeIsAway, .libraryMissing, .appsUnknown, .containerStays:
      true
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
    case .newerFormat, .olderFormat, .registryNewer, .registryOlder: .wrongFormat
    case .inUse, .leased, .appBusy, .registryBusy: .busy
    case .belongsToOther, .exchangeable, .registryOfOthers, .notPermitted, .otherAccount, .notEntitled,
      .restrained:
      .notPermitted
    case .badHomeName: .usage
    case .noApp: .noApp
    case .appsUnknown(let kind, _): kind
    case .alreadyAStore, .notEmpty, .noSpace, .readOnly, .mountedReadOnly, .failed, .unknownAccount,
      .homeExists, .noHome, .homeIsAway, .homeOwnerUnknown, .homeIsGone, .homesOfOthers,
      .notAdoptable,
      .libraryMissing, .registryFailed, .appExists, .noContainer, .tooManyGrants,
      .tooManyGrantsOfUser, .tooManyChoices, .tooManyApps, .tooManyContainers, .tooManyGroups,
      .tooManyConsents, .additionalID, .numberOfOther, .numberOfFormer,
      .noEjectedHome, .severalEjectedHomes,
      .teamOfOtherRoot, .appOfFormerRoot, .containerOfOtherTeam, .containerOfOther,
      .containerOfOtherSpelling, .containerStays, .noRemovedContainer,
      .containerIsThere:
      .failed
    }
  }
}
