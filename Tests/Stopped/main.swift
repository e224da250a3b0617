// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

// insula-stopped CALLS WORK STORE [...]: does one piece of work on a store, and is killed before or after one
// of its system calls: at the CALLS'th stop of the tracer, which sees two for each. What is on disk changes
// by system calls only, so these are all the moments that there are. With 0 it is left to end.
//
// Ends with 0 if the work was done, and prints how many stops there were; 9 if it was killed, 1 if it failed.

func complain(_ text: String) -> Never {
  _ = write(2, text + "\n", text.utf8.count + 1)
  exit(1)
}

func work() -> Never {
  do {
    try Work.run(Array(CommandLine.arguments.dropFirst(2)))
    exit(0)
  } catch {
    complain("\(error)")
  }
}

guard CommandLine.arguments.count > 3, let last = Int(CommandLine.arguments[1]) else {
  complain("insula-stopped CALLS WORK STORE [...]")
}
if last == 0 { work() }

let traceMe: Int32 = 0
let toNextCall: Int32 = 24
let setOptions: Int32 = 0x4200
let followThreads = 8
let anyThread: Int32 = 0x4000_0000
let child = clx_fork()
if child == 0 {
  guard clx_ptrace(traceMe, 0, 0) == 0 else { complain("can't be traced") }
  raise(SIGSTOP)
  work()
}
var stops = 0
var status: Int32 = 0
// The calls of all its threads are counted, in the order in which they come.
while true {
  let thread = waitpid(-1, &status, anyThread)
  guard thread > 0 else { break }
  let code = clx_exit_status(status)
  if thread == child, code >= 0 {
    let text = "\(stops)\n"
    _ = write(1, text, text.utf8.count)
    exit(code)
  }
  if thread == child, clx_term_signal(status) != 0 { exit(1) }
  if code >= 0 || clx_term_signal(status) != 0 { continue }
  if stops == last {
    kill(child, SIGKILL)
    while waitpid(-1, &status, anyThread) > 0 {}
    exit(9)
  }
  if stops == 0 { _ = clx_ptrace(setOptions, child, followThreads) }
  stops += 1
  // A thread that is gone by now has no next call.
  _ = clx_ptrace(toNextCall, thread, 0)
}
complain("the work got lost")
