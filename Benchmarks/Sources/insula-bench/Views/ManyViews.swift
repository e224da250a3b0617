// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// Many apps that run at once and each do a little work: what that costs the serving process.
struct ManyViews {
  let app: RunningApp
  let pid: pid_t
  let count: Int

  /// How many are being started at a time.
  private static let together = 4

  /// For each line that it is told it makes, reads, lists and removes some files in its container, and says
  /// that it has.
  private static let script = """
    mkdir -p "tmp/$1" && cd "tmp/$1" && while echo ready && read line; do
      for name in a b c; do echo "$line" >$name; read text <$name; mv $name $name.new; done
      set -- *; rm *.new
      [ $# = 3 ] && [ "$text" = "$line" ] || echo failed
    done
    """

  func measure() throws(Failure) -> String {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    // What every view needs that is the first one.
    let first = try start(-1)
    try expectReady(first)
    try end([first])

    let before = try ProcessUsage.now(of: pid)
    let descriptors = ProcessUsage.descriptors(of: pid)
    let begin = monotonicNanoseconds()
    var apps: [Child] = []
    for number in 0..<count {
      apps.append(try start(number))
      if number >= Self.together { try expectReady(apps[number - Self.together]) }
    }
    for app in apps.suffix(Self.together) { try expectReady(app) }
    let started = monotonicNanoseconds()
    let idle = try ProcessUsage.now(of: pid)
    for app in apps { app.tell("word") }
    for app in apps { try expectReady(app) }
    let worked = monotonicNanoseconds()
    let after = try ProcessUsage.now(of: pid)
    let open = ProcessUsage.descriptors(of: pid)
    try end(apps)
    let ended = monotonicNanoseconds()
    // The daemon hears of the end of the last ones a little later.
    for _ in 0..<200 where ProcessUsage.descriptors(of: pid) > descriptors { usleep(20_000) }

    func seconds(_ from: Int64, _ to: Int64) -> String { Report.text(Double(to - from) / 1e9) + " s" }
    func perView(_ usage: [String: Int], _ key: String) -> String {
      guard let old = before[key], let new = usage[key] else { return "?" }
      return "\(key) \(Report.text(Double(new - old) / Double(count))) kB a view (\(old) kB to \(new) kB)"
    }
    return """
      \(count) views: started in \(seconds(begin, started)), all at work at \
      once for \(seconds(started, worked)), ended in \(seconds(worked, ended))
      when all are there: \(perView(idle, "VmRSS")), \(perView(idle, "Pss"))
      when all have worked: \(perView(after, "VmRSS")), \(perView(after, "Pss")) (at most 200 kB)
      threads: \(before["Threads"] ?? 0) before, \(after["Threads"] ?? 0) then (at most 16)
      descriptors: \(descriptors) before, \(open) then, \
      \(ProcessUsage.descriptors(of: pid)) after the last has ended
      """
  }

  private func start(_ number: Int) throws(Failure) -> Child {
    try Child(app.words(["sh", "-c", Self.script, "sh", "view\(number)"]), pipes: true)
  }

  private func expectReady(_ app: Child) throws(Failure) {
    let line = app.readLine()
    guard line == "ready" else { throw Failure("an app said '\(line)'") }
  }

  private func end(_ apps: [Child]) throws(Failure) {
    for app in apps { app.endInput() }
    // The shell ends with the failure of its last read.
    for app in apps { try app.wait(allowing: [0, 1]) }
  }
}
