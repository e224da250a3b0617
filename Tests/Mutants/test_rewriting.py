# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What the rewriting of sources must hold: python3 -m unittest discover Tests/Mutants"""
import pathlib
import random
import tempfile
import unittest

import blocks
import lots
import swifttext
import switches

SAMPLE = '''
struct Sample {
  let table = ["}": 1, "\\(text("{"))": 2]  // func none() {
  /* A comment /* with one in it { */ func none() { */
  var double: Int { count * 2 }
  var stored: Int = 3 { didSet { told(stored) } }
  var both: Int {
    get { count }
    set { count = newValue }
  }
  subscript(index: Int) -> Int { index }
  init?(_ words: [String] = { ["{"] }()) throws(Errno) {
    guard words.count > 2 else { return nil }
    print("""
      } func \\(words[0]) {
      """)
    record(words, at: 0)
    let raw = #"a "quoted" \\( brace {"#
    func inner(_ a: Int) -> Int { a }
    switch words.count {
    case 1: record(words, at: 1)
    default: break
    }
  }
  func sum<T>(_ a: T, _ b: T) -> Bool where T: Comparable {
    if let c = find(a), a < b && check(a, b) {
      return c == a
    }
    return add(a, b,
      more: [1, 2])
  }
  deinit { end() }
}
protocol Asked {
  func asked(_ a: Int) -> Int
  var known: Int { get }
  init()
}
extension Asked { func asked(_ a: Int) -> Int { a + 1 } }
'''


def bodies(text):
    return [text[start:end + 1] for start, end in swifttext.bodies(swifttext.mask(text))]


class Masking(unittest.TestCase):
    def test_positions_and_lines_stay(self):
        masked = swifttext.mask(SAMPLE)
        self.assertEqual(len(masked), len(SAMPLE))
        self.assertEqual([i for i, c in enumerate(masked) if c == "\n"],
                         [i for i, c in enumerate(SAMPLE) if c == "\n"])

    def test_brackets_in_strings_and_comments_are_none(self):
        masked = swifttext.mask(SAMPLE)
        self.assertEqual(masked.count("{"), masked.count("}"))
        self.assertNotIn("none", masked)
        self.assertNotIn("quoted", masked)

    def test_strings(self):
        for text, length in [('"a"', 3), (r'"\""', 4), (r'"\(f("}"))"', 11), ('#"""#', 5), ('"""\n"x"\n"""', 11),
                             (r'#"\#(g(")"))"#', 14), (r'#"\"#', 5)]:
            self.assertEqual(swifttext.end_of_literal(text + "; rest", 0), length, text)

    def test_string_without_an_end_ends_with_its_line(self):
        self.assertEqual(swifttext.mask('a "b\nc'), "a \x01\x01\nc")


class Bodies(unittest.TestCase):
    def test_each_function_and_accessor_has_one(self):
        found = bodies(SAMPLE)
        self.assertIn("{ count * 2 }", found)
        self.assertIn("{ count }", found)
        self.assertIn("{ count = newValue }", found)
        self.assertIn("{ index }", found)
        self.assertIn("{ end() }", found)
        self.assertIn("{ a + 1 }", found)
        self.assertEqual(sum("return nil" in body for body in found), 1)
        self.assertEqual(sum("return c == a" in body for body in found), 1)
        self.assertEqual(len(found), 8)

    def test_none_is_within_another(self):
        ranges = swifttext.bodies(swifttext.mask(SAMPLE))
        for (_, end), (start, _) in zip(ranges, ranges[1:]):
            self.assertLess(end, start)


class Weaving(unittest.TestCase):
    def fault(self, old, new, number=1):
        fault = switches.Fault.replacing(f"f{number}", "Sample.swift", SAMPLE.index(old), old, new, [])
        fault.number = number
        return fault

    def test_both_statements_are_there(self):
        fault = self.fault("record(words, at: 0)", "", 7)
        groups, unfit = switches.assign(SAMPLE, [fault])
        self.assertEqual(unfit, [])
        woven = switches.weave(SAMPLE, groups).text
        self.assertEqual(woven.count("if InsulaMutant.isOn(7) {"), 1)
        self.assertEqual(woven.count("record(words, at: 0)"), 1)
        self.assertEqual(woven.count("guard words.count > 2"), 2)
        # Strings of many lines are as they were.
        self.assertEqual(woven.count('print("""\n      } func \\(words[0]) {\n      """)'), 2)
        masked = swifttext.mask(woven)
        self.assertEqual(masked.count("{"), masked.count("}"))

    def test_two_faults_of_a_body_are_each_alone(self):
        faults = [self.fault("a < b", "a <= b", 1), self.fault("more: [1, 2]", "more: [2, 1]", 2)]
        groups, _ = switches.assign(SAMPLE, faults)
        woven = switches.weave(SAMPLE, groups).text
        self.assertEqual(woven.count("a <= b"), 1)
        self.assertEqual(woven.count("a < b"), 2)
        self.assertEqual(woven.count("more: [2, 1]"), 1)
        self.assertIn("} else if InsulaMutant.isOn(2) {", woven)

    def test_lines_lead_to_their_faults(self):
        fault = self.fault("more: [1, 2]", "more: [2, 1]")
        woven = switches.weave(SAMPLE, switches.assign(SAMPLE, [fault])[0])
        lines = woven.text.split("\n")
        self.assertEqual(len(lines), len(woven.owners))
        self.assertEqual(woven.faults_at(lines.index("      more: [2, 1])") + 1), [fault])
        self.assertEqual(woven.faults_at(1), [])
        self.assertEqual(woven.faults_at(len(lines) + 5), [])

    def test_outside_of_functions_there_is_no_switch(self):
        for old, new in [('"}": 1', '"}": 2'), ("let table", "var table"), ("Int = 3", "Int = 4")]:
            fault = self.fault(old, new)
            self.assertEqual(switches.assign(SAMPLE, [fault]), ({}, [fault]), old)

    def test_fault_that_opens_a_bracket_is_no_switch(self):
        fault = self.fault("record(words, at: 0)", "record(words, at: 0")
        self.assertEqual(switches.assign(SAMPLE, [fault])[1], [fault])

    def test_change_is_cut_to_what_differs(self):
        fault = self.fault("a < b && check", "a <= b && check")
        self.assertEqual(SAMPLE[fault.start:fault.end] + "|" + fault.new, "|=")
        self.assertEqual(fault.lines(SAMPLE)[1], "if let c = find(a), a <= b && check(a, b) {")

    def test_errors_are_read(self):
        log = "x\n/t/A.swift:3:9: error: no\n/t/A.swift:4:1: warning: w\n 3 | `- error: no\n/t/A.swift:3:9: error: no\n"
        self.assertEqual(switches.errors(log), [("/t/A.swift", 3, "no")])


class Drawing(unittest.TestCase):
    def changes(self, rule):
        return {SAMPLE[start:end] + " -> " + new for start, end, new in lots.candidates(SAMPLE)[rule]}

    def test_rules(self):
        self.assertEqual(self.changes("negate"), {
            "words.count > 2 -> !(words.count > 2)", "a < b && check(a, b) -> !(a < b && check(a, b))"})
        self.assertEqual(self.changes("operator"),
                         {"> -> >=", "< -> <=", "&& -> ||", "== -> !="})
        self.assertIn("record(words, at: 0) -> ", self.changes("drop"))
        self.assertNotIn("add(a, b,\n      more: [1, 2]) -> ", self.changes("drop"))
        self.assertEqual(self.changes("swap"), {"a, b -> b, a"})
        self.assertIn("2 -> 3", self.changes("off by one"))
        # Neither in strings, nor outside of functions.
        self.assertNotIn("3 -> 4", self.changes("off by one"))

    def test_same_seed_draws_the_same(self):
        def drawn(seed):
            return [(fault.name, fault.start, fault.new) for fault in
                    lots.draw({"A.swift": SAMPLE}, 8, random.Random(seed))]
        self.assertEqual(drawn(1), drawn(1))
        self.assertTrue(any(drawn(1) != drawn(seed) for seed in range(2, 12)))

    def test_no_line_is_drawn_twice(self):
        lines = [fault.line(SAMPLE) for fault in lots.draw({"A.swift": SAMPLE}, 50, random.Random(3))]
        self.assertEqual(len(lines), len(set(lines)))


class Blocks(unittest.TestCase):
    def read(self, text, reader):
        with tempfile.NamedTemporaryFile("w", suffix=".list") as file:
            file.write(text)
            file.flush()
            return reader(pathlib.Path(file.name))

    def test_list(self):
        found = self.read("# Words\n= a-b\nfile F.swift\nsuites A B\n<<<\n# old\n  x\n---\n>>>\n", blocks.read_list)
        self.assertEqual([(m.name, m.file, m.suites, m.old, m.new) for m in found],
                         [("a-b", "F.swift", ["A", "B"], "# old\n  x", "")])

    def test_flaws_of_a_list(self):
        whole = "= a\nfile F\nsuites A\n<<<\nx\n---\ny\n>>>\n"
        for text, words in [(whole + whole, "there twice"), (whole[:-4], "no end"), ("what\n", "can't be read"),
                            (whole.replace("suites A\n", ""), "suites missing")]:
            with self.assertRaisesRegex(ValueError, words):
                self.read(text, blocks.read_list)

    def test_equivalent(self):
        known = self.read("= e\nfile Sample.swift\nreason none\n<<<\nrecord(words, at: 0)\n---\nrecord(words, at: 1)\n"
                          ">>>\n", blocks.read_equivalent)
        start = SAMPLE.index("at: 0") + 4
        same = switches.Fault("off by one", "Sample.swift", start, start + 1, "1")
        other = switches.Fault("off by one", "Sample.swift", start, start + 1, "2")
        self.assertTrue(blocks.is_equivalent(same, SAMPLE, known))
        self.assertFalse(blocks.is_equivalent(other, SAMPLE, known))


if __name__ == "__main__":
    unittest.main()
