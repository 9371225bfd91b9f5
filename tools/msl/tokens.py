"""Text into tokens: C++14's lexical grammar, without trigraphs and raw strings."""
import re
from typing import NamedTuple

from msl.rules import Refused


class Token(NamedTuple):
    kind: str  # "name", "number", "string", "character", "punctuator"; "newline" inside directives; "end"
    text: str
    file: str
    line: int
    spaced: bool = False  # white space comes before it
    first: bool = False   # on its line


PUNCTUATORS = ("<<= >>= ... ->* -> ++ -- << >> <= >= == != && || += -= *= /= %= &= |= ^= :: ## "
               "{ } ( ) [ ] ; : ? . ~ ! + - * / % ^ & | = < > , #").split()
LEXER = re.compile(r"""
    (?P<space>(?:[ \t\r\f\v]|\\\n)+) | (?P<newline>\n)
  | (?P<comment>//[^\n]*|/\*.*?\*/) | (?P<open_comment>/\*)
  | (?P<string>(?:u8|u|U|L)?"(?:\\.|[^"\\\n])*") | (?P<character>'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[0-9a-zA-Z_.'])*)
  | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<punctuator>%s)
""" % "|".join(re.escape(p) for p in PUNCTUATORS), re.X | re.S)


def tokenize(text, file):
    """All tokens of a text, line ends among them."""
    tokens, at, line, spaced, first = [], 0, 1, False, True
    while at < len(text):
        match = LEXER.match(text, at)
        kind = match.lastgroup if match else "nothing"
        if kind in ("nothing", "open_comment"):
            raise Refused(Token("end", text[at], file, line), "syntax", f"no token begins with {text[at]!r}")
        if kind == "newline":
            tokens.append(Token("newline", "\n", file, line))
        elif kind not in ("space", "comment"):
            tokens.append(Token(kind, match[0], file, line, spaced, first))
        spaced = kind in ("space", "comment", "newline")
        first = kind == "newline" or first and spaced
        line += match[0].count("\n")
        at = match.end()
    tokens.append(Token("newline", "\n", file, line))
    return tokens
