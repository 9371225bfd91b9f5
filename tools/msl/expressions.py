"""Expressions: their types as far as address spaces and vectors go, what they call and what they write."""
import re
from typing import NamedTuple, Optional

from msl.language import (ATOMIC_FUNCTIONS, ATOMIC_NAME, CASTS, FUNCTION_KINDS, INEXACT, INNER_TYPES, LANE_ORDER,
                          LIBRARY_CALLS, LIBRARY_VALUES, LONE, PACKED, SPACES, TEMPLATES, VECTORS)
from msl.reader import Reader
from msl.types import Type, UNKNOWN, clash, decayed, pointer

ALIASES = {"int8_t": "char", "uint8_t": "uchar", "int16_t": "short", "uint16_t": "ushort", "int32_t": "int",
           "uint32_t": "uint", "int64_t": "long", "uint64_t": "ulong"}
BINARY = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"],
          ["*", "/", "%"]]
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
SPECIFIERS = {"const", "volatile", "unsigned", "signed", "struct", "enum", "typename", "static", "extern", "inline",
              "constexpr", "typedef", "register", "thread_local"} | SPACES
LOGIC = {"==", "!=", "<", ">", "<=", ">=", "&&", "||"}
OPERATIONS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
              "/": lambda a, b: abs(a) // abs(b) * (1 if a * b >= 0 else -1) if b else None,
              "<<": lambda a, b: a << min(b, 63), ">>": lambda a, b: a >> min(b, 63), "|": lambda a, b: a | b,
              "&": lambda a, b: a & b, "^": lambda a, b: a ^ b}


class Value(NamedTuple):
    type: Type = UNKNOWN
    constant: bool = False        # a constant expression
    number: Optional[int] = None  # its value, where that is known
    function: bool = False        # the name of a function


class Expressions(Reader):
    """`self.calls` collects (callee, arity, token) of the function that is being read."""

    def __init__(self, tokens):
        super().__init__(tokens)
        self.calls, self.kernels = [], set()

    # ---- Conversions

    def convert(self, target, source, token, what):
        """Checks that a value may become `target` by itself."""
        spaces = clash(target, source)
        if spaces:
            self.fault("space-conversion", f"{what}: {spaces[0]} to {spaces[1]}", token)
        if target is None or source is None or target.kind != "value":
            return
        source = decayed(source)
        wanted, found = (ALIASES.get(t.base, t.base) for t in (target, source))
        if source.kind == "value" and found in VECTORS and wanted in VECTORS | LONE and wanted != found:
            self.fault("vector-conversion", f"{what}: {found} to {wanted}", token)

    # ---- Precedence

    def expression(self):
        value = self.assignment()
        while self.accept(","):
            value = self.assignment()
        return value

    def assignment(self):
        left = self.conditional()
        operator = self.token
        if operator.kind == "punctuator" and operator.text in ASSIGNMENTS:
            self.next()
            self.written(left, operator)
            right = self.braced() if self.token.text == "{" else self.assignment()
            if operator.text == "=":
                self.convert(left.type, right.type, operator, "assignment")
            return Value(left.type)
        return left

    def written(self, value, token):
        type_ = value.type.to if value.type.kind == "reference" else value.type
        if type_ is not None and type_.space == "constant":
            self.fault("constant-write", f"{token.text} on the constant address space", token)

    def conditional(self):
        condition, operator = self.binary(0), self.token
        if not self.accept("?"):
            return condition
        self.scalar(condition, operator)
        first = self.expression()
        self.expect(":")
        second = self.assignment()
        constant = condition.constant and first.constant and second.constant
        self.same_space(first, second, operator)
        return Value(first.type if first.type != UNKNOWN else second.type, constant)

    def binary(self, level):
        if level == len(BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while self.token.kind == "punctuator" and self.token.text in BINARY[level]:
            operator = self.next()
            right = self.binary(level + 1)
            self.same_space(left, right, operator)
            if operator.text in LOGIC:
                self.scalar(left, operator)
                self.scalar(right, operator)
            left = self.combined(left, operator.text, right)
        return left

    def same_space(self, left, right, operator):
        spaces = clash(decayed(left.type), right.type)
        if spaces:
            self.fault("space-conversion", f"{operator.text}: {spaces[0]} and {spaces[1]}", operator)

    def scalar(self, value, operator):
        type_ = value.type.to if value.type.kind == "reference" else value.type
        if type_.kind == "value" and type_.base in VECTORS | PACKED:
            self.fault("vector-logic", f"{operator.text} of {type_.base}", operator)

    @staticmethod
    def combined(left, operator, right):
        number = None
        if operator in OPERATIONS and left.number is not None and right.number is not None:
            number = OPERATIONS[operator](left.number, right.number)
        constant = left.constant and right.constant
        if operator in ("+", "-"):
            for side in (decayed(left.type), decayed(right.type)):
                if side.kind == "pointer":
                    return Value(side, constant)
        if operator in LOGIC:
            return Value(UNKNOWN, constant)
        bases = [v.type.base for v in (left, right) if v.type.kind == "value" and v.type.base in VECTORS]
        return Value(Type("value", bases[0]) if bases else UNKNOWN, constant, number)

    def unary(self):
        token = self.token
        if token.text in ("+", "-", "!", "~") and token.kind == "punctuator":
            self.next()
            value = self.unary()
            if token.text == "!":
                self.scalar(value, token)
            number = -value.number if token.text == "-" and value.number is not None else None
            return Value(value.type if value.type.base in VECTORS else UNKNOWN, value.constant, number)
        if token.text in ("++", "--"):
            self.next()
            value = self.unary()
            self.written(value, token)
            return value
        if token.text == "*" and token.kind == "punctuator":
            self.next()
            type_ = decayed(self.unary().type)
            return Value(type_.to if type_.kind == "pointer" else UNKNOWN)
        if token.text == "&" and token.kind == "punctuator":
            self.next()
            value = self.unary()
            if value.function:
                self.fault("function-pointer", "the address of a function", token)
            type_ = value.type.to if value.type.kind == "reference" else value.type
            return Value(pointer(type_))
        if token.text in ("sizeof", "alignof"):
            self.next()
            if self.token.text == "(" and self.starts_type(1):
                self.next()
                self.type_name()
                self.expect(")")
            else:
                self.unary()
            return Value(UNKNOWN, constant=True)
        if token.text == "(" and self.starts_type(1):
            return self.cast()
        return self.postfix(self.primary())

    def starts_type(self, ahead):
        """Whether the token there begins a type, not a call of its constructor."""
        token, after = self.ahead(ahead), self.ahead(ahead + 1)
        if token.kind != "name":
            return False
        if token.text in SPECIFIERS or token.text in FUNCTION_KINDS:
            return True
        if after.text == "::" and (token.text, self.ahead(ahead + 2).text) in INNER_TYPES:
            return True
        if token.text == "metal" and after.text == "::":
            return self.starts_type(ahead + 2)
        return self.is_type_name(token) and after.text not in ("(", "{", "::")

    def cast(self):
        begin = self.expect("(")
        target = self.type_name()
        self.expect(")")
        if self.token.text == "{":
            self.fault("grammar", "a compound literal", begin)
            self.skip_balanced()
            return Value(target)
        return self.cast_of(target, self.unary(), begin)

    def cast_of(self, target, value, token):
        spaces = clash(target, value.type)
        if spaces:
            self.fault("space-conversion", f"cast: {spaces[0]} to {spaces[1]}", token)
        number = value.number if target.kind == "value" else None
        return Value(target, value.constant, number)

    # ---- Primaries

    def primary(self):
        token = self.token
        if token.kind == "number":
            return self.number()
        if token.kind == "character":
            self.next()
            return Value(UNKNOWN, constant=True)
        if token.kind == "string":
            self.fault("string", token.text)
            self.next()
            return Value()
        if self.accept("("):
            value = self.expression()
            self.expect(")")
            return value
        if token.text == "[":
            self.refuse("lambda", "a lambda expression")
        if token.text == "{":
            return self.braced()
        if token.text in ("true", "false", "nullptr"):
            self.next()
            return Value(UNKNOWN, constant=True)
        if token.text in CASTS:
            return self.named_cast()
        if token.kind == "name":
            return self.name()
        return self.refuse("syntax", f"{token.text or 'the end'} in an expression")

    def number(self):
        token = self.next()
        text = token.text.replace("'", "")
        if re.match(r"0[xX]", text):
            if re.search(r"[pP.]", text):
                self.fault("grammar", f"{token.text}, a hexadecimal floating literal", token)
                return Value(UNKNOWN, constant=True)
        elif re.search(r"[.eE]", text):
            if not re.search(r"([fF]|[hH]|bf|BF)$", text):
                self.fault("float-literal", token.text, token)
            return Value(UNKNOWN, constant=True)
        if re.search(r"(ll|LL)", text):
            self.fault("type", f"{token.text}, a long long literal", token)
        digits = re.sub(r"[uUlL]+$", "", text)
        if not re.fullmatch(r"0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*", digits):
            self.refuse("syntax", f"{token.text} is no number", token)
        return Value(UNKNOWN, True, int(digits, 8 if re.fullmatch(r"0[0-7]+", digits) else 0))

    def braced(self):
        self.expect("{")
        while self.token.text != "}":
            if self.token.text == "." and self.ahead(2).text == "=":
                self.fault("grammar", "a designated initialiser")
                self.next(), self.next(), self.next()
            self.braced() if self.token.text == "{" else self.assignment()
            if not self.accept(","):
                break
        self.expect("}")
        return Value()

    def named_cast(self):
        token = self.next()
        self.expect("<")
        target = self.type_name()
        self.expect(">")
        self.expect("(")
        value = self.expression()
        self.expect(")")
        return self.cast_of(target, value, token)

    def name(self):
        """A name with its qualifiers, its template arguments and, when it is called, its call."""
        token, path = self.token, [self.next().text]
        while self.accept("::"):
            path.append(self.next().text)
        if path[0] == "metal" and len(path) > 1:
            path = path[1:]
        name, qualifiers = path[-1], path[:-1]
        symbol = self.look_up(name) if not qualifiers else None
        if symbol and symbol.kind in ("variable", "constant"):
            return Value(symbol.type or UNKNOWN, symbol.kind == "constant", symbol.number)
        if qualifiers and (qualifiers[0], name) in LIBRARY_VALUES:
            return Value(UNKNOWN, constant=True)
        target = None
        if self.token.text == "<" and (name in TEMPLATES or symbol and symbol.kind in ("template", "type")):
            target = self.template_arguments()
        if name == "as_type" and target:
            self.arguments()
            return Value(target)
        if not symbol and not qualifiers and self.is_type_name(token) or symbol and symbol.kind == "type":
            type_ = symbol.type if symbol else Type("value", ALIASES.get(name, name))
            values = [self.braced()] if self.token.text == "{" else self.arguments()
            return Value(type_, all(v.constant for v in values))
        return self.called(token, qualifiers, name, symbol)

    def template_arguments(self):
        """The first one's type, or None."""
        self.expect("<")
        first = None
        while True:
            if self.starts_type(0):
                type_ = self.type_name()
                first = first or type_
            else:
                self.binary(7)  # below comparisons
            if not self.accept(","):
                break
        self.expect(">")
        return first

    # ---- Calls

    def arguments(self):
        self.expect("(")
        values = []
        while self.token.text != ")":
            values.append(self.assignment())
            if not self.accept(","):
                break
        self.expect(")")
        return values

    def called(self, token, qualifiers, name, symbol):
        if self.token.text != "(":
            if symbol and symbol.kind in ("function", "template"):
                if self.tokens[self.at - 2].text != "&":
                    self.fault("function-pointer", name, token)
                return Value(function=True)
            if name.startswith("memory_order_"):
                if name != "memory_order_relaxed":
                    self.fault("memory-order", name, token)
                return Value(UNKNOWN, constant=True)
            return self.refuse("unknown-call", f"{name} is declared nowhere", token)
        values = self.arguments()
        if symbol and symbol.kind in ("function", "template"):
            return self.user_call(token, name, symbol, values)
        self.library_call(token, qualifiers, name)
        return Value()

    def user_call(self, token, name, symbol, values):
        if name in self.kernels:
            self.fault("kernel-call", name, token)
        self.calls.append((name, token))
        fitting = [o for o in symbol.overloads if len(o[0]) == len(values)] or symbol.overloads
        parameters, result = next((o for o in fitting if not any(map(clash, o[0], (v.type for v in values)))),
                                  fitting[0])
        for parameter, value in zip(parameters, values):
            self.convert(parameter, value.type, token, f"argument of {name}")
        return Value(result or UNKNOWN)

    def library_call(self, token, qualifiers, name):
        """Names of the library that kernels may call, and why others are refused."""
        if qualifiers and qualifiers[-1] == "fast":
            self.fault("fast-math", f"fast::{name}", token)
        elif name == "sqrt":
            if not qualifiers or qualifiers[-1] != "precise":
                self.fault("fast-math", "sqrt without precise::", token)
        elif LANE_ORDER.fullmatch(name):
            self.fault("lane-order", name, token)
        elif ATOMIC_NAME.fullmatch(name) and name not in ATOMIC_FUNCTIONS:
            self.fault("atomic-function", name, token)
        elif name in INEXACT:
            self.fault("math-function", name, token)
        elif name not in LIBRARY_CALLS:
            self.fault("unknown-call", name, token)

    # ---- Postfixes

    def postfix(self, value):
        while True:
            if self.token.text == "[":
                self.next()
                self.expression()
                self.expect("]")
                type_ = decayed(value.type)
                value = Value(type_.to if type_.kind == "pointer" else Type("value", space=type_.space))
            elif self.token.text in (".", "->"):
                arrow = self.next().text == "->"
                value = self.member(value, arrow, self.next())
            elif self.token.text in ("++", "--"):
                self.written(value, self.next())
            elif self.token.text == "(":
                self.fault("function-pointer", "a value is called")
                self.arguments()
                value = Value()
            else:
                return value

    def member(self, value, arrow, token):
        type_ = decayed(value.type)
        if arrow:
            type_ = type_.to if type_.kind == "pointer" else UNKNOWN
        found = self.members.get(type_.base, {}).get(token.text)
        if found is not None:
            return Value(found.at(type_.space))
        return Value(Type("value", space=type_.space))
