// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Conformance
import Glibc

func complain(_ text: String) -> Never {
  _ = write(2, text, text.utf8.count)
  exit(2)
}

func run(_ options: Options) throws {
  let chosen = Catalogue.all.filter { check in
    options.only.isEmpty || options.only.contains { check.name.hasPrefix($0) }
  }
  if options.list {
    for check in chosen { print(check.name) }
    return
  }
  try options.person?.assume()
  let user = Person(uid: geteuid() == 0 ? 54321 : geteuid(), gid: geteuid() == 0 ? 54321 : getegid())
  guard
    var runner = Runner(
      path: options.place, user: user, peer: options.peer, inheritsGroup: options.inheritsGroup,
      lacksNothing: options.lacksNothing)
  else { complain("insula-conformance: can't open \(options.place): \(String(cString: strerror(errno)))\n") }
  var report = Report(known: options.known, json: options.json)
  for check in chosen { report.add(check.name, runner.run(check)) }
  exit(report.finish() ? 0 : 1)
}

do {
  try run(Options(Array(CommandLine.arguments.dropFirst())))
} catch let error as UsageError {
  complain("insula-conformance: \(error.text)\n" + Options.usage)
} catch {
  complain("insula-conformance: \(error)\n")
}
