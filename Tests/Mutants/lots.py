# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Draws small faults by lot, by rules that know nothing of what the code means."""
import re

import swifttext
from switches import Fault

CONDITION = re.compile(r"(?<![.\w#`])(if|guard|while)\s+")
UNFIT_CLAUSE = re.compile(r"\s*(?:let|var|case|#\w+)\b")
# A call that is a whole statement.
CALL = re.compile(r"^[ \t]+(?:_ = )?(?:try[?]? )?[A-Za-z_][\w.?]*\(", re.MULTILINE)
NO_CALL = re.compile(r"\s*(?:return|throw|if|guard|while|for|switch|case|super\.init|self\.init|fatalError|"
                     r"precondition\w*|assert\w*|func|init|subscript|else|defer|repeat|in)\b")
LITERAL = re.compile(r"(?<![\w.$\x01#])\d+(?![\w.\x01])")
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
OPERATOR = re.compile(r"(?<= )(<=?|>=?|==|!=|&&|\|\|)(?= )")
ARGUMENTS = re.compile(r"[\w>]\(")
LABEL = re.compile(r"\s*(?:(\w+):(?!:)\s*)?")


def negations(text, masked, start, end):
    for match in CONDITION.finditer(masked, start, end):
        last = end_of_condition(masked, match.end(), end, match.group(1) == "guard")
        if last is None:
            continue
        for begin, finish in swifttext.split_at_commas(masked, match.end(), last):
            begin, finish = swifttext.stripped(text, begin, finish)
            if begin < finish and not UNFIT_CLAUSE.match(masked, begin):
                yield begin, finish, f"!({text[begin:finish]})"


def end_of_condition(masked, start, end, is_guard):
    """Where the condition ends: at the brace, or at 'else' of a guard."""
    position = start
    while position < end:
        if is_guard and re.compile(r"\belse\b").match(masked, position):
            return position
        if masked[position] == "{" and not is_guard:
            return position
        if masked[position] in swifttext.OPENING:
            position = swifttext.closing(masked, position) or end
        position += 1
    return None


def dropped_calls(text, masked, start, end):
    for match in CALL.finditer(masked, start, end):
        if NO_CALL.match(masked, match.start()) or not begins_statement(masked, match.start()):
            continue
        last = swifttext.closing(masked, match.end() - 1)
        following = "" if last is None else masked[last + 1:end + 1]
        # Nothing else on its line, and nothing that goes on from it.
        if last is None or last >= end or not re.match(r"[ \t]*(\x01+)?\n(?!\s*[.?+&|*/=<>-])", following):
            continue
        begin = match.start() + len(match.group()) - len(match.group().lstrip())
        yield begin, last + 1, ""


def begins_statement(masked, position):
    before = masked[:position].rstrip(" \t\n\x01")
    return before[-1:] in ("{", "}", ")", ":", "]") or re.search(r"[\w?\"]$", before) is not None and \
        re.search(r"\b(?:in|return|try|throw|else|where|as|is)$", before) is None


def literals(text, masked, start, end):
    for match in LITERAL.finditer(masked, start, end):
        number = int(match.group())
        yield match.start(), match.end(), str(number + 1)
        if number > 0:
            yield match.start(), match.end(), str(number - 1)


def operators(text, masked, start, end):
    for match in OPERATOR.finditer(masked, start, end):
        yield match.start(), match.end(), OPERATORS[match.group()]


def swapped_arguments(text, masked, start, end):
    for match in ARGUMENTS.finditer(masked, start, end):
        last = swifttext.closing(masked, match.end() - 1)
        if last is None or last > end or "\n" in text[match.end():last]:
            continue
        values = []
        for begin, finish in swifttext.split_at_commas(masked, match.end(), last):
            label = LABEL.match(masked, begin)
            values.append((*swifttext.stripped(text, label.end(), finish), label.group(1)))
        for (first, after, label), (second, finish, other_label) in zip(values, values[1:]):
            one, other = text[first:after], text[second:finish]
            # Arguments of one type mostly have a label each, or none.
            if one != other and (label is None) == (other_label is None) and is_simple(one) and is_simple(other):
                yield first, finish, other + text[after:second] + one


def is_simple(value):
    return re.fullmatch(r"[\w.]+", value) is not None


RULES = {"negate": negations, "drop": dropped_calls, "off by one": literals, "operator": operators,
         "swap": swapped_arguments}


def candidates(text):
    """All faults that the rules can make in the functions of a file, by the name of the rule."""
    masked = swifttext.mask(text)
    found = {rule: [] for rule in RULES}
    for opening, end in swifttext.bodies(masked):
        for rule, find in RULES.items():
            found[rule] += find(text, masked, opening + 1, end)
    return found


def draw(texts, count, lot):
    """Faults of a number of files, at most one of each statement; each rule gets its turn."""
    pools = {rule: [] for rule in RULES}
    for file in sorted(texts):
        for rule, changes in candidates(texts[file]).items():
            pools[rule] += [(file, *change) for change in changes]
    for pool in pools.values():
        lot.shuffle(pool)
    drawn, lines = [], set()
    while len(drawn) < count and any(pools.values()):
        for rule in RULES:
            if not pools[rule] or len(drawn) == count:
                continue
            file, start, end, new = pools[rule].pop()
            line = (file, texts[file].count("\n", 0, start))
            if line not in lines:
                lines.add(line)
                drawn.append(Fault(rule, file, start, end, new))
    return drawn
