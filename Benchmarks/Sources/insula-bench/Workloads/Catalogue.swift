// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// All rows in the order of the table.
enum Catalogue {
  static func groups(_ samples: Samples, _ arguments: Arguments) -> [Group] {
    [
      Group(name: "metadata", order: .rowByRow, mostRounds: .max, workloads: metadata),
      Group(name: "namespace", order: .rowByRow, mostRounds: .max, workloads: namespace),
      Group(name: "data", order: .rowByRow, mostRounds: .max, workloads: data),
      Group(name: "several", order: .rowByRow, mostRounds: .max, workloads: several),
      Group(name: "tree", order: .together, mostRounds: 5, workloads: Program.tree(samples)),
      Group(name: "compile", order: .rowByRow, mostRounds: 3, workloads: Program.compile(samples)),
      Group(
        name: "sealed", order: .batchByBatch, mostRounds: .max, isOfInsulaOnly: true,
        workloads: [OpenSealed(arguments)]),
      Group(
        name: "verify", order: .rowByRow, mostRounds: 5, isOfInsulaOnly: true,
        workloads: Verification.rows(arguments) + Installation.rows(arguments)),
    ]
  }

  private static var metadata: [any Workload] {
    [
      StatFiles(name: "stat", title: "stat, one file, warm", count: 1),
      StatFiles(name: "stat-100", title: "stat, 100 files, warm", count: 100),
      StatMissing(),
      StatDeep(),
      ListDirectory(name: "readdir", title: "readdir of 1,000, warm", withStat: false),
      ListDirectory(name: "readdir-stat", title: "readdir + stat of 1,000", withStat: true),
      OpenRead(),
      ChangeMode(),
      SetAttribute(),
      GetAttribute(),
    ]
  }

  private static var namespace: [any Workload] {
    [CreateFiles(), RenameFiles(), UnlinkFiles(), MakeDirectories(), RemoveDirectories()]
  }

  private static var data: [any Workload] {
    [
      SequentialPass(name: "sequential-read", title: "sequential read, 1 MiB", writes: false),
      SequentialPass(name: "sequential-write", title: "sequential write, 1 MiB", writes: true),
      RandomAccess(name: "random-read", title: "random read, 4 KiB", writes: false),
      RandomAccess(name: "random-write", title: "random write, 4 KiB", writes: true),
      WriteSync(),
      MapShared(),
    ]
  }

  private static var several: [any Workload] {
    [
      SeveralProcesses(
        name: "two-create", title: "two processes: create + stat + unlink", count: 2, job: .createStatUnlink),
      SeveralProcesses(
        name: "two-open-read", title: "two processes: open + read + close", count: 2, job: .openRead),
      SeveralProcesses(
        name: "eight-create", title: "eight processes: create + stat + unlink", count: 8,
        job: .createStatUnlink),
      SeveralProcesses(
        name: "eight-open-read", title: "eight processes: open + read + close", count: 8, job: .openRead),
      SeveralProcesses(
        name: "compute", title: "getxattr, 20 µs of work after each", count: 1, job: .requestCompute),
      SeveralProcesses(
        name: "two-compute", title: "two processes: the same", count: 2, job: .requestCompute),
    ]
  }
}
