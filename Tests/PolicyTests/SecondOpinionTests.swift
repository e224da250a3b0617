// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import TestSupport
internal import Testing

/// Two evaluators that share nothing must agree on everything.
@Suite struct SecondOpinionTests {
  static let chunks = 50
  static let questionsPerChunk = 20_000

  @Test func agreesWithTheRulesOnAMillionQuestions() async {
    var answers = [Int](repeating: 0, count: NaiveAnswer.allCases.count)
    var differences = 0
    var example = ""
    await withTaskGroup(of: Chunk.self) { group in
      for number in 0..<Self.chunks {
        group.addTask { Chunk(seed: 0x1515_0000 + UInt64(number), questions: Self.questionsPerChunk) }
      }
      for await chunk in group {
        for (index, count) in chunk.answers.enumerated() { answers[index] += count }
        differences += chunk.differences
        if example.isEmpty { example = chunk.example }
      }
    }
    #expect(answers.reduce(0, +) == 1_000_000)
    #expect(differences == 0, "for example \(example)")
    // The questions are worth asking only if every answer comes up often.
    for answer in NaiveAnswer.allCases {
      #expect(answers[answer.rawValue] >= 10_000, "\(answer) came up \(answers[answer.rawValue]) times")
    }
  }
}

/// Some of the million.
private struct Chunk: Sendable {
  var answers = [Int](repeating: 0, count: NaiveAnswer.allCases.count)
  var differences = 0
  var example = ""

  init(seed: UInt64, questions: Int) {
    var random = Questions(seed: seed)
    for _ in 0..<questions {
      let question = random.question()
      let caller = question.naive.caller
      let decision = decide(
        Rights(rawValue: question.rights), on: question.object, in: question.parent,
        by: Credentials(uid: caller.uid, gid: caller.gid)
      ) { gid in
        switch caller.isIn(gid) {
        case .yes: .member
        case .no: .notMember
        case .unknown: .unknown
        }
      }
      let expected = question.naive.answer(question.rights)
      answers[expected.rawValue] += 1
      if Self.inOurWords(expected) != decision {
        differences += 1
        if example.isEmpty { example = "\(question), rules: \(expected), decide: \(decision)" }
      }
    }
  }

  private static func inOurWords(_ answer: NaiveAnswer) -> Decision {
    switch answer {
    case .allow: .allow
    case .sealed: .deny(.readOnly)
    case .place: .deny(.place)
    case .flags: .deny(.flags)
    case .acl: .deny(.acl)
    case .mode: .deny(.mode)
    case .ownership: .deny(.ownership)
    case .sticky: .deny(.sticky)
    }
  }
}
