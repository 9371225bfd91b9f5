"""Declarations: specifiers, declarators, structs, enumerations, and what address spaces they state."""
from typing import NamedTuple

from msl.expressions import Expressions, Value
from msl.language import FUNCTION_KINDS, INNER_TYPES, OTHER_ATOMICS, OTHER_SPACES, SPACES
from msl.reader import Symbol
from msl.types import Type, misplaced_atomic, missing_space, pointer

PLAIN = {"static", "extern", "inline", "constexpr", "typedef", "register", "thread_local", "volatile", "mutable"}


class Specifiers(NamedTuple):
    type: Type        # the object's, in the space that is stated
    words: set        # static, constexpr, kernel, ...
    attributes: list  # of [[...]] before them


class Declarator(NamedTuple):
    name: object      # its token, or None
    type: Type
    parameters: object  # a list of Parameter, of functions
    attributes: list


class Parameter(NamedTuple):
    name: object
    type: Type
    attributes: list
    token: object


class Declarations(Expressions):
    # ---- Specifiers

    def attributes(self):
        """(name, tokens of its argument) of each attribute here."""
        found = []
        while self.token.text == "[" and self.ahead().text == "[":
            self.next(), self.next()
            while self.token.text != "]":
                name, argument = self.next(), []
                if self.token.text == "(":
                    begin = self.at
                    self.skip_balanced()
                    argument = self.tokens[begin + 1:self.at - 1]
                found.append((name, argument))
                self.accept(",")
            self.expect("]"), self.expect("]")
        return found

    def specifiers(self):
        words, space, constant, base, sizes = set(), None, False, None, []
        attributes, begin = self.attributes(), self.token
        while self.token.kind == "name":
            token = self.token
            if token.text in SPACES | OTHER_SPACES:
                space = self.next().text
            elif token.text == "const":
                constant = bool(self.next())
            elif token.text in PLAIN or token.text in FUNCTION_KINDS:
                words.add(self.next().text)
            elif token.text in ("unsigned", "signed", "long", "short") and base in (None, "int"):
                sizes.append(self.next().text)
                if sizes.count("long") == 2:
                    self.fault("type", "long long", token)
            elif token.text in ("struct", "class", "union"):
                base = self.struct()
            elif token.text == "enum":
                base = self.enumeration()
            elif token.text == "typename":
                self.next()
            elif base is None and token.text == "metal" and self.ahead().text == "::":
                self.next(), self.next()
            elif base is None and (not sizes or token.text in ("int", "char", "double")) and self.is_type_name(token):
                base = self.named_type()
            else:
                break
        if base is None and sizes:
            base = "int"
        if base is None:
            if not self.is_name_ahead():
                self.refuse("syntax", f"{begin.text or 'the end'} begins no declaration", begin)
            self.fault("grammar", "a declaration without a type", begin)
            base = "int"
        type_ = base if isinstance(base, Type) else Type("value", self.sized(base, sizes))
        type_ = type_._replace(space=space or type_.space, constant=constant or type_.constant)
        return Specifiers(type_, words, attributes)

    def is_name_ahead(self):
        return self.token.kind == "name" and self.ahead().text in ("=", ";", "(", "[", ",")

    @staticmethod
    def sized(base, sizes):
        unsigned = "u" if "unsigned" in sizes else ""
        if "long" in sizes:
            return unsigned + "long"
        if "short" in sizes:
            return unsigned + "short"
        return unsigned + base if sizes else base

    def named_type(self):
        token = self.next()
        if token.text in OTHER_ATOMICS and self.token.text != "<":
            self.fault("atomic-type", token.text, token)
        if token.text == "double":
            self.fault("type", "double", token)
        symbol = self.look_up(token.text)
        if self.token.text == "::" and (token.text, self.ahead().text) in INNER_TYPES:
            self.next()
            return Type("value", self.next().text)
        if self.token.text == "<":
            first = self.template_arguments()
            if token.text == "atomic" and first and first.base not in ("int", "uint"):
                self.fault("atomic-type", f"atomic<{first.base}>", token)
        return symbol.type if symbol and symbol.type else Type("value", token.text)

    def type_name(self):
        """A type without a name, as in casts."""
        specifiers = self.specifiers()
        declared = self.declarator(specifiers.type, abstract=True)
        self.stated(declared.type, declared.name)
        return declared.type

    def stated(self, type_, token=None):
        if missing_space(type_):
            self.fault("address-space", "a pointer or reference without one", token)
        if misplaced_atomic(type_):
            self.fault("atomic-type", "in the thread's or in constant memory", token)

    # ---- Declarators

    def declarator(self, type_, abstract=False, functions=False):
        """Reads `*name[2]` and the like around a type; `functions`: parentheses after the name hold parameters."""
        while self.token.text in ("*", "&", "&&") and self.token.kind == "punctuator":
            kind = "pointer" if self.next().text == "*" else "reference"
            space, constant = None, False
            while self.token.text in SPACES or self.token.text in ("const", "volatile"):
                word = self.next().text
                space, constant = (word, constant) if word in SPACES else (space, constant or word == "const")
            type_ = Type(kind, space=space, constant=constant, to=type_)
        if self.token.text == "(" and self.ahead().text in ("*", "&"):
            return self.nested(type_, abstract, functions)
        name = None
        if not abstract and self.token.kind == "name":
            name = self.next()
            if name.text == "operator":
                self.refuse("syntax", "operators are not understood", name)
        if functions and self.token.text == "(":
            parameters = self.parameters()
            return Declarator(name, Type("function", to=type_), parameters, self.attributes())
        return Declarator(name, self.suffixes(type_), None, self.attributes())

    def nested(self, type_, abstract, functions):
        """`(*name)[4]` or `(&name)[4]`: what is outside comes first."""
        inner = self.at + 1
        begin = self.token
        self.skip_balanced()
        if self.token.text == "(":
            self.fault("function-pointer", "a pointer to a function", begin)
            self.skip_balanced()
            type_ = Type("function", to=type_)
        else:
            type_ = self.suffixes(type_)
        end, self.at = self.at, inner
        declared = self.declarator(type_, abstract, functions)
        self.expect(")")
        self.at = end
        return declared._replace(attributes=declared.attributes + self.attributes())

    def suffixes(self, type_):
        count = 0
        while self.token.text == "[" and self.ahead().text != "[":
            bracket = self.next()
            if self.token.text != "]" and not self.assignment().constant:
                self.fault("array-bound", "not a constant", bracket)
            self.expect("]")
            count += 1
        for _ in range(count):
            type_ = Type("array", space=type_.space, to=type_)
        return type_

    def parameters(self):
        self.expect("(")
        found = []
        if self.token.text == "void" and self.ahead().text == ")":
            self.next()
        while self.token.text != ")":
            begin = self.token
            if self.token.text == "...":
                self.fault("variadic", "a function of any number of arguments")
                self.next()
                break
            specifiers = self.specifiers()
            declared = self.declarator(specifiers.type)
            type_ = declared.type
            if type_.kind == "array":
                type_ = pointer(type_.to)
            self.stated(type_, declared.name or begin)
            if self.accept("="):
                self.assignment()
            found.append(Parameter(declared.name, type_, specifiers.attributes + declared.attributes, begin))
            if not self.accept(","):
                break
        self.expect(")")
        return found

    # ---- Structs and enumerations

    def struct(self):
        self.next()
        self.attributes()
        name = self.next() if self.token.kind == "name" else None
        type_ = Type("value", name.text if name else f"struct at {self.token.line}")
        if name and self.look_up(name.text) is None:
            self.declare(name, Symbol("type", type_))
        if self.token.text == ":" and name:
            self.fault("derived-class", name.text)
            while self.token.text != "{":
                self.next()
        if self.accept("{"):
            self.members[type_.base] = members = {}
            while self.token.text != "}":
                self.member_declaration(members)
            self.expect("}")
        return type_

    def member_declaration(self, members):
        if self.accept("public", "private", "protected"):
            self.expect(":")
            return
        specifiers = self.specifiers()
        if self.accept(";"):
            return
        while True:
            begin = self.token
            declared = self.declarator(specifiers.type, functions=True)
            if declared.parameters is not None:
                self.refuse("syntax", "member functions are not understood", begin)
            self.stated(declared.type, declared.name)
            if declared.name:
                self.scopes.append({})  # a member hides nothing
                self.declare(declared.name, Symbol("variable", declared.type))
                self.scopes.pop()
                members[declared.name.text] = declared.type
            if declared.type.space and declared.type.kind in ("value", "array"):
                self.fault("local-space", f"a member in {declared.type.space}", begin)
            if self.accept(":"):
                self.fault("bit-field", declared.name.text if declared.name else "unnamed", begin)
                self.assignment()
            if self.accept("="):
                self.assignment()
            if not self.accept(","):
                break
        self.expect(";")

    def enumeration(self):
        self.next()
        scoped = self.accept("class", "struct")
        name = self.next() if self.token.kind == "name" else None
        if name:
            self.declare(name, Symbol("type", Type("value", "int")))
        if self.accept(":"):
            self.specifiers()
        number = -1
        if self.accept("{"):
            while self.token.text != "}":
                constant = self.next()
                value = Value(number=None if number is None else number + 1)
                if self.accept("="):
                    value = self.assignment()
                number = value.number
                if not scoped:
                    self.declare(constant, Symbol("constant", Type("value", "int"), number))
                if not self.accept(","):
                    break
            self.expect("}")
        return Type("value", "int")
