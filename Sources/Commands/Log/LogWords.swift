// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Store

/// What an entry of the log says in words.
struct LogWords {
  private let entry: LogEntry
  /// Where it is, as a person can write it.
  private let path: String?

  init(_ entry: LogEntry, path: String?) {
    self.entry = entry
    self.path = path
  }

  // MARK: What has happened

  var sentence: String {
    guard entry.event == .denied else { return done }
    guard entry.operation != nil else {
      let count = entry.more ?? 0
      return "\(subject) was refused \(count) more things, which are not listed one by one"
    }
    let refusal = entry.rule == RefusalRule.deadly.rawValue ? "got an I/O error when it was to" : "may not"
    var text = "\(subject) \(refusal) \(deed) \(path?.forShell ?? "something whose path is unknown")"
    if let more = entry.more {
      let until = entry.until.map { " until \(LogTime.text($0))" } ?? ""
      text += ": \(more) more time\(more == 1 ? "" : "s")\(until)"
    }
    return text
  }

  /// Who was refused something.
  private var subject: String {
    let pid = entry.pid.map { "pid \($0)" }
    guard let app = entry.app else {
      return (entry.program ?? "a program") + (pid.map { " (\($0))" } ?? "")
    }
    let process = [entry.program, pid].compactMap { $0 }.joined(separator: ", ")
    return process.isEmpty ? app : "\(app) (\(process))"
  }

  private var done: String {
    let app = entry.app.map { " \($0)" } ?? ""
    let place = path.map { " \($0.forShell)" } ?? ""
    let detail = entry.detail.map { " (\($0))" } ?? ""
    let pid = entry.pid.map { ", pid \($0)" } ?? ""
    let more = entry.more.map { " and \($0) more" } ?? ""
    return switch entry.event {
    case .launched: "launched\(app)\(pid)\(detail)"
    case .ended: "ended\(app)\(pid)\(detail)"
    case .granted: "granted\(app)\(place)\(detail)"
    case .revoked: "revoked from\(app)\(place)\(more)\(detail)"
    case .installed: "installed\(app)\(place)\(detail)"
    case .updated: "updated\(app)\(place)\(detail)"
    case .updateWaits: "an update waits until it ends:\(app)\(place)\(detail)"
    case .updateFailed: "could not update\(app)\(place)\(detail)"
    case .updateCancelled: "cancelled the update of\(app)\(place)\(detail)"
    case .uninstalled: "uninstalled\(app)\(place)\(detail)"
    case .imported: "imported data of\(app)\(detail)"
    case .purged: "purged\(app)\(detail)"
    case .systemChanged: "changed the system domain\(detail)"
    case .mounted: "mounted the store\(detail)"
    case .unmounted: "unmounted the store\(detail)"
    case .replaced: "replaced the process that serves the store\(detail)"
    case .gaveUp: "removed the mount\(detail)"
    case .consentAllowed: "allowed\(app)\(detail)"
    case .consentDenied: "denied\(app)\(detail)"
    case .consentReset:
      entry.app == nil
        ? "forgot what a user had decided\(detail)" : "forgot what was decided about\(app)\(detail)"
    case .teamAssigned: "assigned a team to a root\(detail)"
    case .volumeAdded: "added the volume\(place)\(detail)"
    case .volumeEjected: "ejected the volume\(place)\(detail)"
    case .volumeLocked: "locked the volume\(place)\(detail)"
    case .volumeUnlocked: "unlocked the volume\(place)\(detail)"
    case .consentMissing: "ended\(app), which did not say why it asks\(pid)\(detail)"
    // Of a later version.
    default: "\(entry.event.rawValue)\(app)\(place)\(pid)\(more)\(detail)"
    }
  }

  private var deed: String {
    guard let word = entry.operation, let operation = RefusedOperation(rawValue: word) else {
      return entry.operation ?? "use"
    }
    return switch operation {
    case .read: "read"
    case .write: "write to"
    case .execute: "run"
    case .list: "list"
    case .access: "use in the way that it asks for"
    case .find: "find"
    case .status: "see the attributes of"
    case .create: "create"
    case .makeDirectory: "make the directory"
    case .makeLink: "make the link"
    case .makeNode: "make"
    case .link: "make another name"
    case .remove: "remove"
    case .removeDirectory: "remove the directory"
    case .rename: "rename"
    case .mode: "change the mode or ACL of"
    case .owner: "change the owner of"
    case .times: "change the times of"
    case .truncate: "change the size of"
    case .readAttribute: "read an extended attribute of"
    case .listAttributes: "list the extended attributes of"
    case .writeAttribute: "change an extended attribute of"
    case .allocate: "reserve room in"
    case .flags: "change the flags of"
    case .lock: "lock"
    case .other: "use"
    }
  }

  // MARK: What would allow it

  /// Which rule that was, and what would allow it; nil where there is nothing to say.
  var advice: String? {
    guard entry.event == .denied, let word = entry.rule else { return nil }
    guard let rule = RefusalRule(rawValue: word) else { return "by the rule '\(word)'" }
    return text(of: rule)
  }

  /// The name of the bundle that the path leads into, which is mostly the app's.
  private var bundleName: String {
    let names = (path ?? "").parts(between: "/")
    return names.first { $0.hasSuffix(".app") }.map { String($0.dropLast(4)) } ?? "ID"
  }

  private func text(of rule: RefusalRule) -> String {
    let quoted = (path ?? "PATH").forShell
    let app = entry.app ?? "ID"
    return switch rule {
    case .system: "nobody changes the system domain in place; 'insula system update' replaces it as a whole"
    case .app: "nobody changes an installed app in place; 'insula update' replaces it by another version"
    case .standard: "a standard directory stays as it is for everybody; work in what is below it"
    case .container: "only Insula makes and moves containers; an app works in the Data of its own"
    case .inbox: "what was delivered can be read, moved away and removed, and is not changed in the Inbox"
    case .place: "a location rule, which holds for root too: nothing allows this in that place"
    case .view:
      "the app may only look at this; 'insula grant \(app) \(quoted) --read-write' lets it change "
        + "a file or folder of yours"
    case .readOnlyGrant:
      "it was granted for reading only; 'insula grant \(app) \(quoted) --read-write' lets the app change it"
    case .besideGrant:
      "only a file in this folder was granted to the app, not the folder; 'insula grant' with the folder "
        + "lets it use all in it"
    case .boundary:
      "what was granted stays apart from everything else: copy it instead of moving or linking it, or grant "
        + "a folder that has both places in it"
    case .sandbox:
      "a sandboxed app is started in its view: 'insula run \(bundleName.forShell)' ('insula apps' has its "
        + "identifier)"
    case .consent:
      "it is private, and its user has not consented; 'insula consent list \(app)' shows what there is to "
        + "decide, 'insula consent allow' decides"
    case .flags: "a flag protects it; 'insula flags \(quoted)' shows which, and its owner can clear that"
    case .acl: "its ACL refuses it, or that of its folder; 'insula acl \(quoted)' shows the entries"
    case .mode:
      "its mode refuses it, or that of its folder; 'ls -ld' shows the mode, and the owner can change it"
    case .owner: "only the owner, or root, may do this"
    case .sticky: "in a sticky folder only the owner of a file, or of the folder, may do this"
    case .append: "it may only be appended to: an ACL or a flag allows no more"
    case .deadly:
      "two processes that serve the store died by this request; the daemon's log and 'coredumpctl' may say "
        + "why"
    }
  }
}
