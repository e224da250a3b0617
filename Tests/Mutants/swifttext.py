# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Finds its way in the text of a Swift file: what is code, and where the bodies of functions are.

It is no parser. It knows strings, comments and brackets, which is all that is needed here; what it does not
understand, it leaves alone.
"""
import re

# In place of each character of a string or a comment, so that positions stay and no pattern matches there.
MASKED = "\x01"
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
ACCESSOR = re.compile(r"\s*(?:@\w+\s+)*(?:(?:mutating|nonmutating)\s+)?"
                      r"(?:get|set|_read|_modify|willSet|didSet|unsafeAddress|unsafeMutableAddress)\b[^{}]*\{")
# What a protocol wants of a property.
WANTED = re.compile(r"\{\s*get(?:\s+(?:set|async|throws(?:\(\w+\))?|nonmutating))*\s*\}")
DECLARATION = re.compile(r"(?<![.\w`])(?:func\s+[^\s(<]+|init[?!]?(?=\s*[(<])|subscript(?=\s*[(<])|deinit)")
PROPERTY = re.compile(r"(?<![.\w`])var\s+\w+\s*:[^={}\n]*(?:\n[^={}\n]*)?\{")
# A declaration without a body, as protocols have, ends where the next one begins.
NEXT_ITEM = re.compile(r"\n\s*(?:@\w+\s+)*(?:(?:package|public|internal|private|fileprivate|static|mutating)\s+)*"
                       r"(?:func|init|deinit|subscript|var|let|case|associatedtype|struct|enum|class|extension)\b")


def end_of_string(text, start):
    """The position behind the string that begins at a quotation mark or at the '#' before it."""
    position = start
    while text[position] == "#":
        position += 1
    hashes = "#" * (position - start)
    # What has many lines begins on the next one; else #"""# is a quotation mark.
    quotes = '"""' if text.startswith('"""\n', position) else '"'
    position += len(quotes)
    ending, escape = quotes + hashes, "\\" + hashes
    while position < len(text):
        if text.startswith(ending, position):
            return position + len(ending)
        if text.startswith(escape + "(", position):
            position = end_of_interpolation(text, position + len(escape))
        elif text.startswith(escape, position):
            position += len(escape) + 1
        elif text[position] == "\n" and quotes == '"':
            return position
        else:
            position += 1
    return position


def end_of_interpolation(text, start):
    depth, position = 0, start
    while position < len(text):
        skipped = end_of_literal(text, position)
        if skipped:
            position = skipped
            continue
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        position += 1
        if depth == 0:
            return position
    return position


def end_of_comment(text, start):
    if text.startswith("//", start):
        end = text.find("\n", start)
        return len(text) if end < 0 else end
    depth, position = 0, start
    while position < len(text):
        if text.startswith("/*", position):
            depth, position = depth + 1, position + 2
        elif text.startswith("*/", position):
            depth, position = depth - 1, position + 2
            if depth == 0:
                return position
        else:
            position += 1
    return position


def end_of_literal(text, position):
    """The position behind the string or the comment that begins here; None if neither does."""
    if text.startswith(("//", "/*"), position):
        return end_of_comment(text, position)
    if text[position] == '"' or re.compile(r'#+"').match(text, position):
        return end_of_string(text, position)
    return None


def mask(text):
    """The text with strings and comments masked; newlines stay."""
    masked, position = [], 0
    while position < len(text):
        end = end_of_literal(text, position)
        if end is None:
            masked.append(text[position])
            position += 1
        else:
            masked.append(re.sub(r"[^\n]", MASKED, text[position:end]))
            position = end
    return "".join(masked)


def closing(masked, opening):
    """The position of the bracket that closes the one at a position; None if there is none."""
    expected = []
    for position in range(opening, len(masked)):
        character = masked[position]
        if character in OPENING:
            expected.append(OPENING[character])
        elif character in CLOSING:
            if expected.pop() != character:
                return None
            if not expected:
                return position
    return None


def brace_after(masked, start):
    """The brace that begins the body of the declaration; None where it has no body."""
    limit = NEXT_ITEM.search(masked, start)
    limit = limit.start() if limit else len(masked)
    position = start
    while position < limit:
        character = masked[position]
        if character == "{":
            return position
        if character == "}":
            return None
        if character in OPENING:
            end = closing(masked, position)
            if end is None:
                return None
            # A default value may be a closure of many lines.
            position, limit = end, max(limit, end + 1)
            following = NEXT_ITEM.search(masked, end)
            limit = following.start() if following else len(masked)
        position += 1
    return None


def accessors(masked, start, end):
    """The bodies of get, set and the like between two positions; the whole if there are none."""
    if WANTED.fullmatch(masked, start, end + 1):
        return []
    if not ACCESSOR.match(masked, start + 1):
        return [(start, end)]
    found, position = [], start + 1
    while match := ACCESSOR.match(masked, position):
        last = closing(masked, match.end() - 1)
        if last is None:
            return []
        found.append((match.end() - 1, last))
        position = last + 1
    return found


def bodies(masked):
    """The positions of the braces of each body of a function or an accessor, none within another."""
    found = []
    for match in DECLARATION.finditer(masked):
        opening = brace_after(masked, match.end())
        if opening is not None:
            found.append((opening, match.group().startswith("subscript")))
    found += [(match.end() - 1, True) for match in PROPERTY.finditer(masked)]
    outermost, last = [], -1
    for opening, has_accessors in sorted(found):
        if opening < last:
            continue
        end = closing(masked, opening)
        if end is None:
            continue
        outermost += accessors(masked, opening, end) if has_accessors else [(opening, end)]
        last = end
    return outermost


def split_at_commas(masked, start, end):
    """The ranges between the commas outside of brackets."""
    parts, depth, begin = [], 0, start
    for position in range(start, end):
        character = masked[position]
        if character in OPENING:
            depth += 1
        elif character in CLOSING:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append((begin, position))
            begin = position + 1
    return parts + [(begin, end)]


def stripped(text, start, end):
    """The range without blanks at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
