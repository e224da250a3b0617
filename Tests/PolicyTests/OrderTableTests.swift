// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Section 3.2 of the rules: which reason comes first.
@Suite struct OrderTableTests {
  @Test(arguments: rows)
  func reasonsHaveAnOrder(row: String) throws {
    let cells = try Table.cells(row, 8)
    let object = Object(
      uid: 1, gid: 10, mode: 0o700, kind: try Table.kind(cells[2]), zone: try Table.zone(cells[1]),
      flags: try Table.flags(cells[3]), acl: try Table.acl(cells[4]))
    let parent = Object(
      uid: 1, gid: 10, mode: 0o1777, kind: .directory, zone: try Table.zone(cells[0]))
    let person = try Person(cells[5])
    let decision = decide(
      try Table.rights(cells[6]), on: object, in: parent, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[7])))
  }

  // zone of the directory | zone | kind | flags | ACL | who | asks | answer
  static let rows = Table.rows(
    """
    system | system | file | uchg | damaged | other | write | sealed
    system | system | file | uchg | damaged | root | write | sealed
    system | system | file | - | none | root | append | sealed
    system | system | file | - | none | root | writeattr | sealed
    system | system | file | - | none | root | writeextattr | sealed
    system | system | file | - | none | root | writesecurity | sealed
    system | system | file | - | none | root | chown | sealed
    system | system | file | - | none | root | link | sealed
    system | system | file | - | none | root | delete | sealed
    system | system | dir | - | none | root | delete_child | sealed
    system | system | dir | - | none | root | read,add_file | sealed
    system | system | special | - | none | root | write | sealed
    system | system | file | - | everyone +ALL | other | write | sealed
    system | system | file | schg | none | root | read | allow
    system | system | file | - | none | root | readattr,readsecurity | allow
    system | system | file | - | damaged | other | read | list
    system | system | file | - | everyone +read | other | read | allow
    system | system | file | - | none | other | read | mode
    top | library | dir | - | none | root | delete | sealed
    top | users | dir | schg | none | root | delete | sealed
    users | sharedStandard | dir | schg | none | root | delete | place
    users | sharedStandard | dir | - | everyone +delete | other | delete | place
    library | localStandard | dir | - | none | root | delete | place
    library | localStandard | dir | - | none | owner | delete | place
    library | localStandard | dir | uchg | none | root | add_file | flags
    library | localStandard | dir | - | none | root | add_file,delete_child | allow
    library | localStandard | dir | - | none | other | add_file | mode
    users | sharedStandard | dir | - | none | owner | writesecurity | allow
    container | containerData | dir | - | none | root | add_file | place
    container | containerData | dir | - | everyone +ALL | owner | add_subdirectory | place
    container | containerData | dir | uchg | none | owner | delete_child | place
    container | containerData | dir | - | none | owner | delete | place
    container | containerData | dir | - | none | owner | list,search,readattr | allow
    container | containerData | dir | - | none | owner | writesecurity | allow
    container | containerFixture | file | - | none | owner | read | allow
    container | containerFixture | file | - | none | root | write | place
    containerData | containerFixture | symlink | - | none | owner | writeattr | place
    containerData | containerFixture | symlink | - | none | root | delete | place
    containerData | containerFixture | file | - | none | root | link | place
    container | macContainerData | dir | - | none | owner | delete | place
    container | macContainerData | dir | - | none | owner | add_file,add_subdirectory | allow
    container | macContainerData | dir | - | none | other | add_file | mode
    container | macContainerData | dir | uchg | none | owner | add_file | flags
    containerData | containerOwn | file | - | none | owner | read,write,delete,writesecurity | allow
    containerData | containerOwn | dir | - | none | owner | add_file,add_subdirectory,delete_child | allow
    containerData | containerOwn | dir | - | none | owner | delete | allow
    containerData | containerOwn | file | uchg | none | owner | delete | flags
    macContainerData | containerOwn | symlink | - | none | owner | delete | allow
    macContainerData | containerOwn | file | - | none | owner | link | allow
    macContainerData | containerOwn | file | - | everyone -delete | owner | delete | list
    macContainerData | containerFixture | symlink | - | none | root | delete | place
    macContainerData | containerDocuments | dir | - | none | owner | delete | place
    macContainerData | user | dir | - | none | root | delete | place
    top | trashes | dir | - | none | root | delete | sealed
    trashes | user | dir | - | none | owner | delete | allow
    containerData | user | dir | - | none | owner | delete | place
    containerData | user | dir | - | none | owner | add_file,delete_child | allow
    containerData | containerDocuments | dir | - | none | owner | delete | place
    containerData | containerDocuments | dir | - | none | \
    owner | add_file,add_subdirectory,delete_child | allow
    containerDocuments | user | dir | - | none | owner | delete,write,writesecurity | allow
    containerDocuments | inbox | dir | - | none | owner | \
    list,search,readattr,readextattr,readsecurity | allow
    containerDocuments | inbox | dir | - | none | owner | delete_child | allow
    containerDocuments | inbox | dir | - | none | owner | delete | place
    containerDocuments | inbox | dir | - | none | root | delete | place
    containerDocuments | inbox | dir | - | everyone +ALL | root | add_file | place
    containerDocuments | inbox | dir | - | none | owner | add_subdirectory | place
    containerDocuments | inbox | dir | uchg | none | owner | writesecurity | place
    containerDocuments | inbox | dir | - | none | other | writeattr | place
    containerDocuments | inbox | symlink | - | none | owner | delete | allow
    containerDocuments | inbox | file | - | none | owner | write | place
    inbox | delivered | file | - | none | owner | read,execute,readattr,readextattr,readsecurity | allow
    inbox | delivered | file | - | none | owner | delete | allow
    inbox | delivered | file | - | none | root | delete | allow
    inbox | delivered | file | - | none | other | delete | sticky
    inbox | delivered | file | uchg | none | owner | delete | flags
    inbox | delivered | file | uchg | none | owner | write | place
    inbox | delivered | file | - | everyone +ALL | owner | write | place
    inbox | delivered | file | - | everyone +ALL | root | append | place
    inbox | delivered | file | - | none | owner | read,write | place
    inbox | delivered | file | - | none | root | writeattr | place
    inbox | delivered | file | - | none | owner | writeextattr | place
    inbox | delivered | file | - | none | root | writesecurity | place
    inbox | delivered | file | - | none | root | chown | place
    inbox | delivered | file | - | none | owner | link | place
    inbox | delivered | file | - | none | owner | delete,write | place
    inbox | delivered | symlink | - | none | owner | writeattr | place
    inbox | delivered | dir | - | none | owner | delete,delete_child,list,search | allow
    inbox | delivered | dir | - | none | root | add_file | place
    delivered | delivered | dir | - | none | owner | add_subdirectory | place
    delivered | delivered | file | - | none | owner | delete | allow
    containers | container | dir | - | none | owner | delete | allow
    containers | container | dir | - | none | owner | add_file | place
    containers | container | file | - | none | owner | write,delete | allow
    groupContainers | groupContainer | dir | - | none | owner | add_file,delete | allow
    groupContainer | containerFixture | file | - | none | root | delete | place
    groupContainer | user | file | - | none | owner | delete,write | allow
    user | user | file | uchg | everyone +ALL | owner | write | flags
    user | user | file | uchg | damaged | other | write | flags
    user | user | file | uchg | none | other | write | flags
    user | user | file | uchg | none | other | read | mode
    user | user | file | uchg | damaged | other | read | list
    user | user | file | - | damaged | other | write | list
    user | user | file | - | everyone -write | other | write | list
    user | user | file | - | none | other | write | mode
    user | user | file | - | none | other | delete | sticky
    user | user | file | - | none | other | delete,write | sticky
    user | user | file | - | everyone -delete | other | delete,writesecurity | list
    user | user | file | uchg | none | other | link | flags
    user | user | file | uchg | none | root | link | flags
    user | user | file | - | damaged | other | link | allow
    """)

  /// Any place that is not sealed lets root do what no rule of the place forbids.
  @Test(arguments: Zone.allCases.filter { !$0.isReadOnly && !$0.hasFixedNames && !$0.isUnchangeable })
  func rootPassesACLsAndModes(zone: Zone) {
    for acl in [
      AccessControl.none, .damaged, .acl(AccessControlList([.init(.deny, .everyone, .genericAll)])),
    ] {
      let object = Object(uid: 1, gid: 10, mode: 0, kind: .directory, zone: zone, acl: acl)
      let everything = Rights.all.subtracting(.delete)
      #expect(decide(everything, on: object, by: Credentials(uid: 0, gid: 0)) { _ in .unknown } == .allow)
    }
  }
}
