// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport

// insula-damaged ROUNDS SEED DIRECTORY: leaves what a worker leaves when it dies, damages some words of it,
// and lets another process take it over, ROUNDS times. That process may know less than before. It must not
// crash, hang, or take one thing for another.
//
// With "every" for ROUNDS each word in which something stands is damaged once, by itself.
//
// Ends with 0 if all went well, else with 1, and says what did not.

func complain(_ text: String) { _ = write(2, text + "\n", text.utf8.count + 1) }

let words = CommandLine.arguments
guard words.count == 4, let seed = UInt64(words[2]), words[1] == "every" || Int(words[1]) != nil else {
  complain("insula-damaged ROUNDS|every SEED DIRECTORY")
  exit(2)
}
let left = try Left(in: words[3])
let memory = try KeptMemory()
let isEvery = words[1] == "every"
let rounds = Int(words[1]) ?? memory.usedCount + 1
var random = SeededRandom(seed: seed)
var failures = 0
for round in 0..<rounds where failures < 10 {
  // The first finds it as it was.
  let said =
    round == 0 ? [] : isEvery ? [memory.damageOne(round - 1, &random)] : memory.damage(&random)
  let child = clx_fork()
  if child == 0 {
    // Which ends it.
    alarm(20)
    do {
      try left.takeOver(isWhole: round == 0)
      _exit(0)
    } catch {
      complain("\(error)")
      _exit(1)
    }
  }
  var status: Int32 = 0
  waitpid(child, &status, 0)
  memory.restore()
  if status == 0 { continue }
  failures += 1
  complain("round \(round), signal \(clx_term_signal(status)): \(said.joined(separator: ", "))")
}
if isEvery { print("\(rounds - 1) words were damaged") }
exit(failures == 0 ? 0 : 1)
