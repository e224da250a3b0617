#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Makes insula-semantics(7) of Documentation/SEMANTICS.md: semantics-man.sh VERSION >insula-semantics.7
# Understands what that document uses: headings, paragraphs, lists, tables, code, bold text and links. The tests that
# hold a rule and the table of contents are for readers of the source, so the page leaves them out.
set -eu
cd "$(dirname "$0")/.."
[ $# -eq 1 ] || { echo "semantics-man.sh: usage: semantics-man.sh VERSION" >&2; exit 2; }

LC_ALL=C awk -v version="$1" '
  # Text without its marks; what was code may be copied, so its dashes are those of ASCII.
  function plain(text,    parts, count, i, out, part) {
    gsub(/\*\*/, "", text)
    gsub(/\\\|/, "|", text)
    while (match(text, /\[[^]]*\]\([^)]*\)/)) {
      part = substr(text, RSTART, RLENGTH)
      sub(/\]\(.*/, "", part)
      text = substr(text, 1, RSTART - 1) substr(part, 2) substr(text, RSTART + RLENGTH)
    }
    count = split(text, parts, "`")
    out = ""
    for (i = 1; i <= count; i++) {
      part = parts[i]
      gsub(/\\/, "\\e", part)
      gsub(/\047/, "\\(aq", part)
      gsub(/"/, "\\(dq", part)
      gsub(/\^/, "\\(ha", part)
      gsub(/~/, "\\(ti", part)
      if (i % 2 == 0) gsub(/-/, "\\-", part)
      out = out part
    }
    return out
  }
  # Prints text in lines that fit an editor; none begins as a request.
  function fill(text,    words, count, i, line) {
    count = split(plain(text), words, /[ \t]+/)
    line = ""
    for (i = 1; i <= count; i++) {
      if (words[i] == "") continue
      if (line != "" && length(line) + length(words[i]) > 76) { put(line); line = "" }
      line = line (line == "" ? "" : " ") words[i]
    }
    if (line != "") put(line)
  }
  function put(line) { print (line ~ /^\./ ? "\\&" : "") line }
  function heading(macro, text) { print macro " \"" plain(text) "\""; isFirst = 1 }
  # A heading begins a paragraph by itself.
  function start(macro) { if (macro != ".PP" || !isFirst) print macro; isFirst = 0 }
  function flush() {
    gsub(/names the test that holds it, and /, "", paragraph)
    if (paragraph != "" && paragraph !~ /^Tests are written as /) {
      start(isItem ? ".IP \\(bu 2" : ".PP")
      fill(paragraph)
    }
    paragraph = ""
    isItem = 0
  }
  # A row of a table: what stands in the first column, and the others under their titles.
  function row(    i, cell, text, more) {
    text = trimmed(cells[2])
    more = ""
    for (i = 3; i < fields; i++) {
      cell = trimmed(cells[i])
      if (cell == "" || titles[i] == "test" || titles[i] == "tests") continue
      more = more (more == "" ? "" : "; ") titles[i] ": " cell
    }
    start(".IP \\(bu 2")
    fill(text (more == "" ? "" : " (" more ")"))
  }
  function trimmed(text) { gsub(/^ +| +$/, "", text); return text }
  function take(line,    i) {
    gsub(/\\\|/, "\001", line)
    fields = split(line, cells, "|")
    for (i = 1; i <= fields; i++) gsub(/\001/, "|", cells[i])
  }
  BEGIN {
    print ".TH \"INSULA\\-SEMANTICS\" 7 2026-11-24 \"insula " version "\" \"Insula Manual\""
    print ".SH \"NAME\""
    print "insula\\-semantics \\- every rule of the tree, and how it differs from a plain directory"
    heading(".SH", "DESCRIPTION")
  }
  /^# / { next }
  /^## Contents/ { isLeftOut = 1; next }
  /^## / { flush(); isLeftOut = 0; hasTable = 0; heading(".SH", toupper(substr($0, 4))); next }
  isLeftOut { next }
  /^### / { flush(); hasTable = 0; heading(".SS", substr($0, 5)); next }
  /^```/ {
    flush()
    isCode = !isCode
    if (isCode) { start(".PP"); print ".RS 4\n.nf" } else print ".fi\n.RE"
    next
  }
  isCode { if ($0 == "") print ".sp"; else { text = "`" $0 "`"; put(plain(text)) } ; next }
  /^\|[-:| ]*$/ { next }
  /^\|/ {
    take($0)
    if (!hasTable) { flush(); for (i = 1; i <= fields; i++) titles[i] = trimmed(cells[i]); hasTable = 1 } else row()
    next
  }
  { hasTable = 0 }
  /^ *$/ { flush(); next }
  /^ *[-*] / { flush(); isItem = 1; sub(/^ *[-*] /, "") }
  /^ *[0-9]+\. / { flush(); isItem = 1 }
  { paragraph = paragraph (paragraph == "" ? "" : " ") $0 }
  END {
    flush()
    print ".SH \"SEE ALSO\""
    print ".BR insula (1),"
    print ".BR insula (7),"
    print ".BR insula\\-acl (1),"
    print ".BR insula\\-flags (1)"
  }
' Documentation/SEMANTICS.md
