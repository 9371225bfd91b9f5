"""A stream of tokens with scopes of names: what every part of the parser reads from."""
from typing import NamedTuple, Optional

from msl.language import RESERVED, TYPES, is_reserved
from msl.rules import Fault, Refused
from msl.types import Type


class Symbol(NamedTuple):
    kind: str                     # "variable", "constant", "type", "template", "function", "namespace"
    type: Optional[Type] = None
    number: Optional[int] = None  # of constants, where it is known
    overloads: tuple = ()         # of functions: (parameter types, result)


OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


class Reader:
    def __init__(self, tokens):
        self.tokens, self.at, self.faults = tokens, 0, []
        self.scopes = [{}]
        self.members = {}  # struct -> {member: Type}

    # ---- Tokens

    @property
    def token(self):
        return self.tokens[self.at]

    def ahead(self, n=1):
        return self.tokens[min(self.at + n, len(self.tokens) - 1)]

    def next(self):
        token = self.token
        if token.kind == "end":
            self.refuse("syntax", "the text ends too early")
        self.at += 1
        return token

    def accept(self, *texts):
        if self.token.text in texts and self.token.kind in ("punctuator", "name"):
            return self.next()
        return None

    def expect(self, text):
        if self.token.text == ">>" and text == ">":  # two ends of template arguments
            self.tokens[self.at:self.at + 1] = [self.token._replace(text=">")] * 2
        if self.token.text != text:
            self.refuse("syntax", f"{self.token.text or 'the end'} where {text} is expected")
        return self.next()

    def refuse(self, rule, detail, token=None):
        raise Refused(token or self.token, rule, detail)

    def fault(self, rule, detail, token=None):
        token = token or self.token
        self.faults.append(Fault(token.file, token.line, rule, detail))

    def skip_balanced(self):
        """Over the bracket here, its contents and its end."""
        depth = 0
        while self.token.kind != "end":
            text = self.next().text
            depth += (text in OPEN) - (text in CLOSE)
            if depth == 0:
                return

    def skip_statement(self):
        """To behind the next ; or block on this level, after a fault."""
        while self.token.kind != "end" and self.token.text != "}":
            if self.token.text in OPEN:
                block = self.token.text == "{"
                self.skip_balanced()
                if block:
                    self.accept(";")
                    return
            elif self.next().text == ";":
                return

    # ---- Names

    def look_up(self, name):
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def declare(self, token, symbol):
        if token is None:
            self.refuse("syntax", "a declaration without a name")
        if is_reserved(token.text):
            self.fault("reserved-name", token.text, token)
        self.scopes[-1][token.text] = symbol

    def is_type_name(self, token):
        symbol = self.look_up(token.text) if token.kind == "name" else None
        if symbol:
            return symbol.kind == "type"
        return token.text in TYPES or token.text in ("vec", "packed_vec", "matrix", "array")

    def is_reserved_type(self, token):
        return token.text in RESERVED and token.text in TYPES
