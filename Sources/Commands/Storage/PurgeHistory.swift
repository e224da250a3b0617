// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// What was purged, from the log.
struct PurgeHistory {
  /// One directory whose contents were thrown away.
  struct Entry: Encodable, Equatable {
    /// In seconds since 1970.
    let time: Int64
    let app: String
    let user: UInt32?
    /// Who has asked for it; nil where nobody has, and for the user themselves.
    let by: UInt32?
    let place: PurgePlace?
    let bytes: Int64?
    /// Why it was done where nobody has asked for it.
    let because: String?

    init(_ entry: LogEntry) {
      time = entry.time / 1000
      app = entry.app ?? ""
      (user, by) = (entry.user, entry.by)
      // caches, 100 bytes, since the disk is nearly full
      let parts = (entry.detail ?? "").parts(between: ",", max: 2).map {
        $0.drop { $0 == " " }
      }
      place = parts.first.flatMap { PurgePlace(rawValue: String($0)) }
      bytes = parts.count > 1 ? parts[1].parts(between: " ").first.flatMap { Int64($0) } : nil
      let since = "since "
      because = parts.count > 2 && parts[2].hasPrefix(since) ? String(parts[2].dropFirst(since.count)) : nil
    }
  }

  private let entries: [Entry]

  init(_ entries: [Entry]) { self.entries = entries }

  static func entries(_ access: any StoreAccess, user: UInt32?, app: String?) throws -> [Entry] {
    var query = LogQuery(user: user, app: app)
    var entries: [Entry] = []
    while true {
      let page = try access.log(query)
      entries += page.entries.filter { $0.event == .purged }.map(Entry.init)
      guard page.isMore, page.next > query.after else { return entries }
      query.after = page.next
    }
  }

  func show(json: Bool, withUsers: Bool, _ console: Console) {
    let user = withUsers ? ["USER"] : []
    console.print(
      list: entries, json: json, none: "Nothing was purged.",
      columns: ["TIME", "APP"] + user + ["WHAT", "SIZE", "WHY"]
    ) { entry in
      let name = entry.user.map { Account.numbered($0)?.name ?? "uid \($0)" } ?? "-"
      return [utcText(entry.time), entry.app] + (withUsers ? [name] : [])
        + [
          entry.place?.words ?? "-", entry.bytes?.asSize ?? "-", entry.because ?? "somebody has asked for it",
        ]
    }
  }
}
