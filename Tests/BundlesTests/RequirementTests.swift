// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Testing

@Suite struct RequirementTests {
  @Test func requirementComesBackAsItWent() {
    let requirement = Requirement(identifier: "org.example.helper", team: "TEAM-1.a")
    #expect(
      requirement.description
        == #"identifier "org.example.helper" and certificate leaf[subject.OU] = "TEAM-1.a""#)
    #expect(Requirement(requirement.description) == requirement)
  }

  @Test(arguments: [
    "identifier helper and certificate leaf[subject.OU] = TEAM1",
    "certificate leaf[subject.OU] = \"TEAM1\"\n and\tidentifier  \"helper\"",
  ])
  func otherSpellingsAreUnderstood(text: String) {
    #expect(Requirement(text) == Requirement(identifier: "helper", team: "TEAM1"))
  }

  @Test(arguments: [
    "", "identifier", "identifier \"a\"", "certificate leaf[subject.OU] = T",
    "identifier a or certificate leaf[subject.OU] = T", "identifier a and certificate leaf[subject.O] = T",
    "identifier a and identifier a and certificate leaf[subject.OU] = T",
    "identifier a and certificate leaf[subject.OU] = T and",
    "and identifier a and certificate leaf[subject.OU] = T",
    "identifier \"a and certificate leaf[subject.OU] = T",
    "! identifier a and certificate leaf[subject.OU] = T",
    "identifier \"a\\\"\" and certificate leaf[subject.OU] = T",
    "anchor apple generic and identifier a and certificate leaf[subject.OU] = T",
    "identifier a and certificate leaf[subject.OU] exists",
    "\"identifier\" a and certificate leaf[subject.OU] = T",
  ])
  func otherRequirementsAreNotMet(text: String) {
    #expect(Requirement(text) == nil)
  }
}
