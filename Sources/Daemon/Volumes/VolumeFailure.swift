// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Store

/// Why something can't be a volume.
enum VolumeFailure: Error {
  case missing(path: String, Errno)
  case replaced(path: String)
  case noDirectory
  case notTheirs
  case hangs
  case gone
  /// Nothing says that it was added on this machine.
  case unconfirmed(title: String, isSystem: Bool)
  case kind(String)
  case noHandles(String)
  case overlapsStore
  case overlaps(String?)
  case mount(Errno)
  case engine(EngineFailure)
  case ownersOfDirectory
  case configuration(String)
  case underWay
  case name
  case nameIsTaken
  /// A volume that exists for one user alone has it.
  case nameOfUsers(String)
  case tooMany
  case unfitForHomes(String)
  /// Of whose home the disk or server says that it is another one's; `noted` is for whom root has added it.
  case homeOfOther(name: String, owner: UInt32, noted: UInt32?)
  case store(StoreError)

  var message: String {
    switch self {
    case .missing(let path, let error): "\(path) can't be opened: \(error.messageAboutPath)"
    case .replaced(let path): "at \(path) is another directory than the one that was added"
    case .noDirectory: "only a directory can be a volume"
    case .notTheirs: "it is not yours; only root can have others' directories be volumes"
    case .hangs: "what leads to it does not answer"
    case .gone: "it was ejected meanwhile"
    case .unconfirmed(let title, let isSystem):
      "it was not added on this machine; \(isSystem ? "as root, " : "")'insula volume confirm "
        + "\(title.sanitized)' shows what it is and lets it be in the tree"
    case .kind(let kind):
      "it lies on \(kind); a volume must lie on a disk of this machine (ext4, xfs, btrfs and the like)"
    case .noHandles(let kind):
      "it lies on \(kind), which has no file handles here; choose a directory on a disk"
    case .overlapsStore: "it holds the store, or lies in it"
    case .overlaps(let name?): "it overlaps with the volume \(name.sanitized)"
    case .overlaps(nil): "it overlaps with another volume"
    case .mount(let error): "it can't be mounted for the daemon: \(error.message)"
    case .engine(let failure): failure.reason.sanitized
    case .ownersOfDirectory: "a directory has owners; '--ignore-owners' is for disks and servers"
    case .configuration(let what): what
    case .underWay: "somebody else is doing the same"
    case .name: "its name can't be that of a volume; choose another, of at most 255 bytes, with '--at'"
    case .nameIsTaken:
      "something has that name already; for a volume, choose another with '--at'; a home that "
        + "'insula volume list' shows is given up with 'insula volume eject Users/NAME'"
    case .nameOfUsers(let volume):
      "a volume that exists for one user alone has that name, \(volume); choose another with '--at', or take "
        + "it away: 'insula volume eject NAME --user NAME'"
    case .tooMany: "there are too many volumes; eject some first, and end what uses them"
    case .unfitForHomes(let kind):
      "homes need a place that keeps owners, ACLs and flags and can be written, which \(kind.sanitized) "
        + "there does not offer"
    case .homeOfOther(let name, let owner, let noted):
      "where it lies it belongs to uid \(owner), and not to "
        + (noted.map { "uid \($0), for whom it was added" } ?? "the account \(name.sanitized)")
        + "; if that is right, 'insula volume eject Users/\(name.sanitized)' and 'insula user add "
        + "\(name.sanitized) --home SOURCE' take it anew, as root; if not, chown gives it back there"
    case .store(let error): error.description
    }
  }
}

extension ControlFailure {
  init(_ failure: VolumeFailure, path: String) {
    switch failure {
    case .store(let error): self.init(error)
    case .nameIsTaken, .nameOfUsers: self.init("\(path) can't be a volume: \(failure.message)", .EEXIST)
    case .tooMany: self.init(failure.message, .EDQUOT)
    default: self.init("\(path) can't be a volume: \(failure.message)", .EINVAL)
    }
  }
}
