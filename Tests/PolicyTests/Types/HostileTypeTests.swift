// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import Policy
internal import Testing

// What apps may declare so that others wait, or are deceived:
//
// - thousands of types that conform to each other: `whatIsBuiltTakesTimeInProportion`, `walksAreBounded`
// - a chain of types that leads into a circle: `aChainIntoACircleIsWalkedOnce`
// - a type of another app's, imported, that makes a circle of its types: `circlesAreCutWhereTheyAreImported`
// - an extension or a description that controls a terminal: `kindsAreForPeople`

@Suite(.serialized) struct HostileTypeTests {
  private func type(_ name: String, _ parents: [String], extensions: [String] = []) -> DeclaredType {
    DeclaredType(name, parents: parents, extensions: extensions)
  }

  /// Of this thread on a CPU: others are none of our business.
  private func milliseconds(_ body: () -> Void) -> UInt64 {
    func now() -> UInt64 {
      var time = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
      return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
    }
    let start = now()
    body()
    return now() - start
  }

  /// As many as there can be, each conforming to the 64 that follow.
  private let dense: [DeclaredType] = (0..<4000).map { number in
    DeclaredType(
      "t\(number)", parents: (number + 1..<number + 65).map { "t\($0)" } + ["public.directory"],
      extensions: ["e\(number)"])
  }

  /// Looking at what each conforms to takes minutes.
  @Test func whatIsBuiltTakesTimeInProportion() {
    var table = TypeTable.base
    let time = milliseconds {
      table = TypeTable.base.adding(TypeLayer([AppDeclarations(exported: dense)], over: .base))
    }
    print("a layer of \(dense.count) types: \(time) ms")
    #expect(time < 5000)
    #expect(table.type(forExtension: "e0", isFolder: true)?.identifier == "t0")
    #expect(table.type(forExtension: "e3999", isFolder: true)?.identifier == "t3999")
  }

  @Test func walksAreBounded() {
    let table = TypeTable.base.adding(TypeLayer(dense, over: .base))
    #expect(table.ancestors(of: "t0").count == TypeTable.mostAncestors)
    #expect(table.conforms("t0", to: "t150") && !table.conforms("t0", to: "t3999"))
    let time = milliseconds {
      for _ in 0..<20 { _ = table.kind(of: table.type(of: "x.e0", .folder)) }
    }
    #expect(time < 2000)
  }

  @Test func aChainIntoACircleIsWalkedOnce() {
    let circle = [type("a", ["b"]), type("b", ["a"])]
    let chain = (0..<16_000).map { type("c\($0)", [$0 == 0 ? "a" : "c\($0 - 1)"]) }
    let own = (0..<500).map { type("d\($0)", ["c15999"]) }
    let time = milliseconds { #expect(TypeCircle.find(in: own, among: chain + circle) == nil) }
    print("a chain of \(chain.count) types into a circle: \(time) ms")
    #expect(time < 5000)
    #expect(TypeCircle.find(in: own + [type("b", ["d7"])], among: chain + circle)?.count == 16_003)
    // Deeper than a thread's stack would bear.
    let layer = TypeLayer([type("public.x", ["public.directory"])] + chain.reversed(), over: .base)
    #expect(layer.types.count == 16_001)
  }

  @Test func circlesAreCutWhereTheyAreImported() {
    let evil = AppDeclarations(imported: [type("com.v.base", ["com.v.drawing", "public.data"])])
    let vendor = AppDeclarations(exported: [type("com.v.drawing", ["com.v.base"], extensions: ["vd"])])
    let table = TypeTable.base.adding(TypeLayer([evil, vendor], over: .base))
    #expect(table.type(named: "com.v.drawing") === vendor.exported[0])
    let above = table.ancestors(of: "com.v.base").map(\.identifier)
    #expect(above == ["com.v.base", "public.data", "public.item"])
    // What an app that was removed has hidden is cut too, and nothing conforms to itself.
    let rest = [
      AppDeclarations(imported: [type("t1", ["t2"])]), AppDeclarations(imported: [type("t2", ["t1"])]),
      AppDeclarations(exported: [type("s", ["S", "public.text"])]),
    ]
    let left = TypeTable.base.adding(TypeLayer(rest, over: .base))
    for name in ["t1", "t2", "s"] {
      #expect(left.type(named: name)?.parents.allSatisfy { !left.conforms($0, to: name) } == true, "\(name)")
    }
    #expect(left.conforms("s", to: "public.text"))
  }

  @Test func kindsAreForPeople() {
    for name in ["x.\u{9b}31m", "x.a\u{202e}b", "x.\u{85}"] {
      let kind = TypeTable.base.kind(of: TypeTable.base.type(of: name, .file))
      #expect(kind.sanitized == kind && kind.hasSuffix(" document"), "\(kind.debugDescription)")
    }
  }

  /// A mark behind what keeps fields apart is part of no field's end.
  @Test func marksDoNotJoinFields() {
    let all = AppDeclarations(
      exported: [
        DeclaredType(
          "a.b", parents: ["public.data"], extensions: ["x", "\u{301}y"], kind: "\u{301}z")
      ])
    #expect(AppDeclarations(text: all.text) == all)
  }
}
