// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import LinuxIO
internal import Policy
internal import Store

// What apps can make again is thrown away without a hurry: nobody waits for it but who has asked.

extension AppRequestHandler {
  /// `reason` is told in the log; nil where somebody has asked for it.
  package func purge(
    _ request: PurgeRequest, by caller: CallerIdentity, because reason: String? = nil,
    reaches: @escaping (_ path: String) -> Bool = { _ in true },
    begins: @escaping (_ user: UInt32) -> Bool = { _ in true },
    isCancelled: @escaping () -> Bool
  ) throws(ControlFailure) -> PurgeReport {
    // A job has a thread of its own, and so has a command.
    Pace.giveWay()
    let pace = Pace(most: reason == nil ? .max : Pace.usually)
    return try explaining { () throws(AppFailure) in
      let purger = Purger(
        store, registry, containers: try openContainers(), observer: observer, reaches: reaches,
        begins: begins
      ) { () throws(Errno) in
        // What was taken by then is removed by the thread for purges, or by the next process.
        try pace.rest(orEndIf: isCancelled)
      }
      return try purger.purge(request, by: caller, isCancelled: isCancelled) { item in
        pace.begin()
        guard item.freed.count > 0 else { return }
        log([LogEntry(item, by: reason == nil ? caller.uid : nil, because: reason)])
      }
    }
  }
}

extension LogEntry {
  fileprivate init(_ item: PurgeReport.Item, by user: UInt32?, because reason: String?) {
    self.init(
      now: .purged, user: item.user, app: item.app.text, by: user,
      detail: "\(item.place.rawValue), \(item.freed.bytes) bytes\(reason.map { ", since " + $0 } ?? "")")
  }
}
