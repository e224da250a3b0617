#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Puts small faults into a copy of the tree, all of them in one build, and says which of them the tests find.

Some faults are in Tests/Mutants/list: a name, a file, the suites that should find it, the text and what stands in
its place. Others are drawn by lot in each run (Tests/Mutants/lots.py has the rules); --seed draws the same again.
Each is a switch in the copy: INSULA_MUTANT is its number when the tests run. A fault is found if a test fails, or
if the suites don't end in time. Nothing of this is in the sources themselves.

A fault of the list that is in no function can't be a switch. It is named, and --singles builds the copy once for
each. A drawn fault that does not compile is left out: more are drawn than asked for. One that makes no difference
goes into Tests/Mutants/equivalent, with the reason, and is not counted.

Exit status: 0 if each of the list was found and 85 percent of what was drawn, 1 if not, 2 if the list has a
failure or the copy does not build.
"""
import argparse
import fnmatch
import os
import pathlib
import random
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = ROOT / "Tests/Mutants"
sys.path.insert(0, str(HERE))
# Nothing is to lie about among the sources.
sys.dont_write_bytecode = True

import blocks  # noqa: E402
import copies  # noqa: E402
import lots  # noqa: E402
import switches  # noqa: E402
import trials  # noqa: E402

GOAL = 85
# Of five drawn faults up to three do not compile, most of them exchanges of arguments.
SPARE = 3


def fail_list(words):
    print(words, file=sys.stderr)
    sys.exit(2)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="names or patterns of faults of the list (default: all)")
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument("--check", action="store_true", help="only see whether each still applies")
    parser.add_argument("--draw", type=int, default=40, help="how many to draw by lot (default 40)")
    parser.add_argument("--seed", type=int, help="draw the same as the run that printed this seed")
    parser.add_argument("--only-drawn", action="store_true", help="none of the list")
    parser.add_argument("--in", dest="within", default="Sources/*", metavar="PATTERN",
                        help="draw in these files alone, such as 'Sources/Store/*'")
    parser.add_argument("--singles", action="store_true", help="build once for each that can't be a switch")
    parser.add_argument("--tree", help="keep the copy here, so that the next run builds less")
    parser.add_argument("--build-limit", type=int, default=3600, help="seconds for one build (default 3600)")
    return parser.parse_args()


def choose(mutants, names):
    if not names:
        return mutants
    for name in names:
        if not any(fnmatch.fnmatchcase(mutant.name, name) for mutant in mutants):
            fail_list(f"there is no mutant '{name}'; --list says which there are")
    return [mutant for mutant in mutants if any(fnmatch.fnmatchcase(mutant.name, name) for name in names)]


def check(chosen):
    failures = 0
    for mutant in chosen:
        try:
            mutant.position(ROOT)
        except ValueError as error:
            failures += 1
            print(f"{mutant.name}: {error}")
    print(f"{len(chosen) - failures} of {len(chosen)} apply.")
    return 2 if failures else 0


def faults_of_list(chosen):
    faults = []
    for mutant in chosen:
        try:
            start = mutant.position(ROOT)
        except ValueError as error:
            fail_list(f"{mutant.name}: {error}")
        faults.append(switches.Fault.replacing(mutant.name, mutant.file, start, mutant.old, mutant.new,
                                               mutant.suites))
    return faults


def drawn_faults(options, mutants, texts):
    """Faults by lot, with the suites that the list names for the same file."""
    named = {}
    for mutant in mutants:
        named.setdefault(mutant.file, set()).update(mutant.suites)
    places = {file: text for file, text in texts.items()
              if fnmatch.fnmatchcase(file, options.within) and file.split("/")[1] in trials.TARGETS}
    drawn = lots.draw(places, options.draw * SPARE, random.Random(options.seed))
    for fault in drawn:
        fault.suites = sorted(named.get(fault.file, ()))
    return drawn


def describe(fault, text):
    before, after = fault.lines(text)
    return "\n".join([f"  {fault.file}:{fault.line(text)}"] + ["  - " + line for line in before.splitlines()]
                     + ["  + " + line for line in (after or "(nothing)").splitlines()])


def report(outcome, fault, text, why, began):
    seconds = int(time.monotonic() - began)
    print(f"{outcome:<11} {fault.number:>3}  {fault.name}  {fault.file}:{fault.line(text)}"
          f"{', ' + why if why else ''} ({seconds} s)", flush=True)
    if outcome == trials.MISSED:
        print(describe(fault, text), flush=True)


def try_all(faults, texts, trial):
    """The outcome of each, by its number."""
    outcomes = {}
    for fault in faults:
        began = time.monotonic()
        outcome, why = trial.of(fault)
        outcomes[fault.number] = outcome
        report(outcome, fault, texts[fault.file], why, began)
    return outcomes


def try_singly(faults, texts, tree, trial, options):
    outcomes = {}
    for fault in faults:
        began = time.monotonic()
        with tree.changed(fault.file, fault.changed(texts[fault.file], 0, None)):
            outcome, why = (trials.BROKEN, "it does not compile") if tree.build(options.build_limit) else \
                trial.of(fault, turned_on=0)
        outcomes[fault.number] = outcome
        report(outcome, fault, texts[fault.file], why, began)
    return outcomes


def summarize(label, outcomes):
    counts = {outcome: list(outcomes.values()).count(outcome) for outcome in trials.OUTCOMES}
    judged = counts[trials.FOUND] + counts[trials.MISSED]
    share = 100 * counts[trials.FOUND] / judged if judged else 100
    others = "".join(f", {count} {outcome}" for outcome, count in counts.items()
                     if count and outcome not in (trials.FOUND, trials.MISSED))
    print(f"{label}: {counts[trials.FOUND]} of {judged} found, {share:.0f} percent{others}.", flush=True)
    return share, counts


def run(options, mutants, chosen):
    texts = copies.sources(ROOT)
    listed = [] if options.only_drawn else faults_of_list(chosen)
    drawn = drawn_faults(options, mutants, texts)
    for number, fault in enumerate(listed + drawn, 1):
        fault.number = number
    equivalent = blocks.read_equivalent(HERE / "equivalent")
    tree = copies.Copy(ROOT, options.tree)
    try:
        woven = tree.weave(texts, listed + drawn, options.build_limit)
        if woven is None:
            fail_list(f"the copy does not build; see {tree.path}/build.log")
        singles = [fault for fault in listed if fault in woven.unfit]
        for fault in listed:
            if fault in woven.refused:
                fail_list(f"{fault.name}: it does not compile: {woven.refused[fault]}")
        compiled = [fault for fault in drawn if fault in woven.fit]
        drawn = compiled[:options.draw]
        same = {fault.number: trials.EQUIVALENT for fault in drawn
                if blocks.is_equivalent(fault, texts[fault.file], equivalent)}
        tried = [fault for fault in drawn if fault.number not in same]
        print(f"{woven.builds} builds. Seed {options.seed}: {len(woven.refused)} of {len(woven.refused) + len(compiled)}"
              f" drawn faults do not compile.", flush=True)
        trial = trials.Trial(tree)
        of_list = try_all([fault for fault in listed if fault in woven.fit], texts, trial)
        by_lot = {**same, **try_all(tried, texts, trial)}
        if options.singles:
            trial.prepare(singles)
            tree.unweave(texts)
            of_list |= try_singly(singles, texts, tree, trial, options)
        else:
            for fault in singles:
                print(f"no switch        {fault.name}  {fault.file}: it is in no function; --singles builds it")
        for words in trial.remarks:
            print(words)
    finally:
        tree.end()
    broken = missed = 0
    if listed:
        _, counts = summarize("Of the list", of_list)
        broken, missed = counts[trials.BROKEN], counts[trials.MISSED]
    share, _ = summarize(f"By lot (seed {options.seed})", by_lot) if options.draw else (100, None)
    return 2 if broken else 1 if missed or share < GOAL else 0


def main():
    options = arguments()
    try:
        mutants = blocks.read_list(HERE / "list")
    except ValueError as error:
        fail_list(str(error))
    chosen = choose(mutants, options.names)
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name}  {mutant.file}  {' '.join(mutant.suites)}")
        return 0
    if options.check:
        return check(chosen)
    if os.geteuid() != 0:
        fail_list("This takes root: the faulty programs run in namespaces of their own.")
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1_000_000)
    copies.enter_namespace()
    # Or the build and the tests would go on.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(2))
    return run(options, mutants, chosen)


if __name__ == "__main__":
    sys.exit(main())
