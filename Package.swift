// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc
import PackageDescription

// One set of rules for all Swift targets.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .treatAllWarnings(as: .error),
]

/// For the program itself.
///
/// No code asks at run time what the fields of a type are called, so a fiftieth of the program need not be
/// there. What is printed of an enumeration without words of its own is the name of its type, not of its
/// case.
let program: [SwiftSetting] =
  strict + [.unsafeFlags(["-Xfrontend", "-disable-reflection-metadata"], .when(configuration: .release))]

/// For code that all programs run through, also in a debug build where a run of all tests asks for that: what
/// is generic there takes much of the time of the programs that the tests start.
let quick: [SwiftSetting] =
  Context.environment["INSULA_QUICK_TESTS"] == nil
  ? [] : [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// For code that no request of the kernel's waits for: it takes less room, at a little less speed.
///
/// Instructions that occur more than once become functions of their own.
let small: [SwiftSetting] = [
  .unsafeFlags(["-Osize", "-Xllvm", "-enable-machine-outliner=always"], .when(configuration: .release))
]

/// How the program is linked.
///
/// The loader gets relocations in a compact form where the C library knows it, from glibc 2.36 on, and no
/// names of functions, which nothing looks up. The symbols that debuggers read stay. Functions of the same
/// code are one, and texts that end alike share their end (`-O2`). Nothing asks for the names of Unicode's
/// characters, a twentieth of the program, nor for those of types. Tables for unwinding the stack are left
/// out, a seventh of it: only C++ exceptions require them, of which Swift has none and which its runtime does
/// not catch. Debuggers go by frame pointers.
let compact: [String] = {
  var text = [CChar](repeating: 0, count: 64)
  let length = confstr(Int32(_CS_GNU_LIBC_VERSION), &text, text.count)
  let version = text.prefix(max(0, Int(length) - 1)).map { UInt8(bitPattern: $0) }
    .split { !(0x30...0x39).contains($0) }.compactMap { Int(String(decoding: $0, as: UTF8.self)) }
  let isPacked = version.count > 1 && (version[0], version[1]) >= (2, 36)
  return [
    "-use-ld=lld", "-Xlinker", "--no-export-dynamic", "-Xlinker", "--icf=all", "-Xlinker", "-O2",
    "-Xlinker", "--wrap=_swift_stdlib_getScalarName", "-Xlinker", "--wrap=__cxa_demangle",
    "-Xlinker",
    "--wrap=_ZN5swift8Demangle9__runtime12nodeToStringB5cxx11EPNS1_4NodeERKNS1_15DemangleOptionsE",
    "-Xlinker", "--script=\(Context.packageDirectory)/mount-scripts/link.ld",
  ]
    + (isPacked ? ["-Xlinker", "-z", "-Xlinker", "pack-relative-relocs"] : [])
}()

/// What Swift's runtime needs of the C++ library is linked in where GCC has that as an archive.
///
/// That is 75 KB; to load the shared library would take a quarter of the time of a short command.
let withoutCxxLibrary: [String] = {
  #if arch(x86_64)
    let machine = "x86_64"
  #else
    let machine = "aarch64"
  #endif
  var found = glob_t()
  defer { globfree(&found) }
  guard glob("/usr/lib/gcc/\(machine)-*linux*/*/libstdc++.a", 0, nil, &found) == 0 else { return [] }
  let archives = (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
  // The compiler's version is the folder's name.
  func version(_ path: String) -> Int {
    path.split(separator: "/").dropLast().last.flatMap { Int($0.prefix { $0 != "." }) } ?? 0
  }
  guard let newest = archives.max(by: { version($0) < version($1) }) else { return [] }
  return ["-Xlinker", "--remap-inputs=*/libstdc++.so=\(newest)", "-Xclang-linker", "-static-libgcc"]
}()

let package = Package(
  name: "insula",
  products: [
    .executable(name: "insula", targets: ["insula"]),
    // For programs that run as apps.
    .library(name: "InsulaApp", targets: ["InsulaApp"]),
  ],
  targets: [
    // C: declarations, constants, thin calls.
    .systemLibrary(name: "CFuse", pkgConfig: "fuse3", providers: [.apt(["libfuse3-dev"])]),
    .target(name: "CSQLite"),
    .target(name: "CCrypto"),
    .target(name: "CSessionBus"),
    .target(name: "CTagLib"),
    .target(name: "CLinux", cSettings: [.define("_GNU_SOURCE")]),

    // What apps ask through: nothing of the house, which knows nothing of it.
    .target(name: "CInsula", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "InsulaApp", dependencies: ["CInsula"], swiftSettings: strict),

    // The house, from the ground up; arrows go down only.
    .target(name: "JSON", swiftSettings: program + small + quick),
    .target(name: "PropertyLists", swiftSettings: program + small + quick),
    .target(name: "ContentLines", swiftSettings: program + small),
    .target(name: "LinuxIO", dependencies: ["CLinux"], swiftSettings: program + quick),
    .target(name: "Policy", swiftSettings: program + quick),
    .target(
      name: "Bundles", dependencies: ["PropertyLists", "LinuxIO", "Policy", "CCrypto", "CLinux"],
      swiftSettings: program + small + quick),
    .target(name: "Fuse", dependencies: ["CFuse", "LinuxIO", "CLinux"], swiftSettings: program + quick),
    .target(
      name: "Store", dependencies: ["JSON", "PropertyLists", "LinuxIO", "Policy", "CSQLite", "CLinux"],
      swiftSettings: program + small),
    .target(
      name: "Apps", dependencies: ["Store", "Bundles", "PropertyLists", "Policy", "LinuxIO", "CLinux"],
      swiftSettings: program + small),
    .target(
      name: "Volume", dependencies: ["Fuse", "Store", "Bundles", "Policy", "LinuxIO", "CLinux"],
      swiftSettings: program),
    .target(
      name: "Daemon",
      dependencies: [
        "Volume", "Apps", "Bundles", "Fuse", "Policy", "Store", "PropertyLists", "JSON", "LinuxIO", "CLinux",
      ],
      swiftSettings: program + small),
    .target(
      name: "Commands",
      dependencies: [
        "Daemon", "Fuse", "Apps", "Bundles", "Store", "Policy", "PropertyLists", "JSON", "ContentLines",
        "LinuxIO", "CSessionBus", "CTagLib", "CLinux",
      ],
      swiftSettings: program + small),
    .executableTarget(
      name: "insula", dependencies: ["Commands"], swiftSettings: program,
      linkerSettings: [.unsafeFlags(compact + withoutCxxLibrary, .when(configuration: .release))]),

    // The independent judge: it shares no Swift with what it judges.
    .target(
      name: "Conformance", dependencies: ["CLinux"], path: "Tests/Conformance",
      exclude: [
        "README.md", "known-case.txt", "known-ceph.txt", "known-gluster.txt", "known-insula.txt",
        "known-rootless.txt",
      ], swiftSettings: strict),
    .executableTarget(
      name: "insula-conformance", dependencies: ["Conformance"], path: "Tests/ConformanceRunner",
      swiftSettings: strict),

    // Tests, in the same order.
    // Runs the tests on more threads than there are processors: see threads.c.
    .target(name: "TestThreads", path: "Tests/TestThreads"),
    .target(
      name: "TestSupport", dependencies: ["Fuse", "Store", "LinuxIO", "CLinux", "TestThreads"],
      path: "Tests/TestSupport",
      swiftSettings: strict),
    .testTarget(name: "JSONTests", dependencies: ["JSON", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "ContentLinesTests", dependencies: ["ContentLines", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "LinuxIOTests", dependencies: ["LinuxIO", "CLinux", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "PolicyTests", dependencies: ["Policy", "CLinux", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "BundlesTests",
      dependencies: ["Bundles", "PropertyLists", "Policy", "LinuxIO", "CLinux", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "StoreTests",
      dependencies: ["Store", "Policy", "LinuxIO", "CSQLite", "CLinux", "TestSupport", "insula-stopped"],
      swiftSettings: strict),
    .testTarget(
      name: "AppsTests",
      dependencies: [
        "Apps", "Store", "Bundles", "PropertyLists", "Policy", "LinuxIO", "CLinux", "TestSupport",
        "insula-stopped",
      ], swiftSettings: strict),
    .testTarget(
      name: "FuseTests", dependencies: ["Fuse", "LinuxIO", "CLinux", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "VolumeTests",
      dependencies: [
        "Volume", "Fuse", "Store", "Policy", "LinuxIO", "CLinux", "TestSupport", "insula-damaged",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "CommandsTests",
      dependencies: [
        "Commands", "Daemon", "Volume", "Fuse", "Apps", "Bundles", "Store", "Policy", "JSON", "LinuxIO",
        "PropertyLists", "CLinux", "TestSupport",
        "insula", "insula-app-caller",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "MountTests",
      dependencies: [
        "Volume", "Fuse", "Store", "Bundles", "Policy", "LinuxIO", "CLinux", "TestSupport", "insula",
        "insula-conformance", "insula-client",
      ], swiftSettings: strict),

    // Works on a store until it is killed at one of its system calls, so that tests can see what is left.
    .executableTarget(
      name: "insula-stopped", dependencies: ["Apps", "Store", "Policy", "LinuxIO", "CLinux"],
      path: "Tests/Stopped",
      swiftSettings: strict),

    // Takes over what another process has left, some words of which are damaged.
    .executableTarget(
      name: "insula-damaged", dependencies: ["Volume", "Fuse", "Policy", "LinuxIO", "CLinux", "TestSupport"],
      path: "Tests/Damaged", swiftSettings: strict),

    // Runs as an app, and asks all that the Swift library can ask.
    .executableTarget(
      name: "insula-app-caller", dependencies: ["InsulaApp"], path: "Tests/AppCaller", swiftSettings: strict),

    // Does what it is told through a pipe, so that tests can act as other users and in other processes.
    .executableTarget(
      name: "insula-client", dependencies: ["CLinux"], path: "Tests/Client", swiftSettings: strict),
  ]
)
