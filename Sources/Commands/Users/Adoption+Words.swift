// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Store

extension Adoption {
  /// What was done and what was left, a line for each.
  func lines(_ names: AccountNames) -> [String] {
    var lines = mended.map { $0.line(names) }
    if given > 0 {
      let before = names.userName(previous) ?? "uid \(previous)"
      lines.append("changed owners: \(given) object\(given == 1 ? "" : "s"), until now of \(before)")
    }
    if tamed.count > 0 {
      lines.append("took set-ID bits or capabilities from programs: " + tamed.words)
    }
    for reason in Reason.allCases {
      if let sample = left[reason] { lines.append("left as it is, \(reason.words): " + sample.words) }
    }
    return lines
  }
}

extension Adoption.Reason {
  fileprivate var words: String {
    switch self {
    case .device: "because it is a device node"
    case .linkedElsewhere: "because it also has a name outside of the home"
    case .othersProperty: "because it belongs to somebody else"
    case .protected: "because it can't be changed (see 'lsattr'; 'chattr -i' may help)"
    }
  }
}

extension HomeFault {
  fileprivate func line(_ names: AccountNames) -> String {
    let place = path.isEmpty ? "the home" : path
    return switch kind {
    case .missing: "created \(place)"
    case .notADirectory(let what): "left \(place), which is \(what)"
    case .owner(let uid):
      "changed the owner of \(place), which belonged to \(names.userName(uid) ?? "uid \(uid)")"
    case .othersDirectory: "left \(place), which belongs to somebody else"
    case .mode: "corrected the mode of \(place)"
    case .acl: "completed the ACL of \(place)"
    case .unreadable: "replaced the ACL and flags of \(place), which could not be read"
    }
  }
}
