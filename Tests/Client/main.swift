// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

// Reads a command a line, its words apart by tabs, and answers each with "ok" or the number of the error, and
// what there is to tell. It becomes the user that the arguments name before it begins.

/// Ends the program with a message.
func complain(_ text: String) -> Never {
  _ = write(2, text + "\n", text.utf8.count + 1)
  exit(2)
}

let ids = CommandLine.arguments.dropFirst().compactMap { UInt32($0) }
if ids.count >= 2 {
  var groups = Array(ids.dropFirst(2))
  guard setgroups(groups.count, &groups) == 0, clx_thread_setresgid(ids[1]) == 0,
    clx_thread_setresuid(ids[0]) == 0
  else { complain("can't become user \(ids[0])") }
}
umask(0o022)
signal(SIGPIPE, SIG_DFL)
// Without a parent there is nobody to work for.
_ = clx_prctl(1, UInt(SIGKILL))

var commands = Commands()
while let line = readLine() {
  let words = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
  let answer = commands.run(words) + "\n"
  guard write(1, answer, answer.utf8.count) == answer.utf8.count else { exit(1) }
}
