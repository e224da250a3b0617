// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// How long it takes from `insula run` to the first words of what it runs, compared to bubblewrap alone with
/// the same options.
///
/// Which options those are, a program in bubblewrap's place notes once. Some of what they mount is only there
/// for as long as that run: bubblewrap alone gets the whole tree for the view, and empty files and
/// directories for the rest.
struct RunStart {
  let app: RunningApp
  let scratch: String

  /// It says what time it is as soon as it runs.
  private static let command = ["date", "+%s%N"]
  private static let pairs = 40

  private var place: String { scratch + "/run-start" }

  /// Takes pairs, first the one and then the other in turn, and gives the result as lines for people.
  func measure() throws(Failure) -> String {
    let alone = try recorded()
    var runs: [Double] = []
    var alones: [Double] = []
    // The first of each is not counted.
    for pair in 0...Self.pairs {
      var (run, other) = (0.0, 0.0)
      for isRun in pair.isMultiple(of: 2) ? [true, false] : [false, true] {
        if isRun {
          run = try time(app.words(Self.command), filter: nil)
        } else {
          other = try time(alone, filter: "\(place)/filter")
        }
      }
      if pair > 0 {
        runs.append(run)
        alones.append(other)
      }
    }
    let differences = zip(runs, alones).map { $0 - $1 }
    func line(_ title: String, _ values: [Double]) -> String {
      guard let spread = Spread(values) else { return title }
      let text = [spread.median, spread.lower, spread.upper].map(Report.text)
      return "\(title): \(text[0]) ms (\(text[1])-\(text[2]))"
    }
    return [
      line("insula run, to the first words of the command", runs), line("bwrap alone", alones),
      line("the difference, median of \(Self.pairs) pairs (at most 15 ms)", differences),
    ].joined(separator: "\n")
  }

  /// Milliseconds from the start to what the command says.
  private func time(_ words: [String], filter: String?) throws(Failure) -> Double {
    let before = Self.now()
    let child = try Child(words, pipes: true, filter: filter)
    let text = child.readLine()
    try child.wait()
    guard let after = Int64(text) else { throw Failure("\(words.joined(separator: " ")) said '\(text)'") }
    return Double(after - before) / 1e6
  }

  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// What bubblewrap is told, in words that are good outside of that run too.
  private func recorded() throws(Failure) -> [String] {
    try makeDirectory(place)
    try makeDirectory("\(place)/none")
    try writeFile("\(place)/empty")
    let script = """
      #!/bin/sh
      printf '%s\\0' "$@" >'\(place)/arguments'
      cat <&3 >'\(place)/filter'
      exec /usr/bin/bwrap "$@" 3<'\(place)/filter'

      """
    try writeFile("\(place)/bwrap", Array(script.utf8))
    chmod("\(place)/bwrap", 0o755)
    let path = String(cString: getenv("PATH") ?? strdup("/usr/bin:/bin"))
    setenv("PATH", "\(place):\(path)", 1)
    defer { setenv("PATH", path, 1) }
    try Child.run(app.words(Self.command))
    guard let bytes = readFile("\(place)/arguments") else { throw Failure("bubblewrap was not called") }
    var words = bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast().map {
      String(decoding: $0, as: UTF8.self)
    }
    for index in words.indices.dropLast(2) where words[index].hasSuffix("bind") {
      let target = words[index + 2]
      if !exists(words[index + 1]) { words[index + 1] = standIn(for: target) }
    }
    return ["/usr/bin/bwrap"] + words
  }

  private func standIn(for target: String) -> String {
    if target.hasPrefix("/etc/") { return "\(place)/empty" }
    return exists(target) && target != "/tmp" && target != "/dev/shm" ? target : "\(place)/none"
  }
}
