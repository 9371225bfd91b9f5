"""The text as a whole: functions, statements, and who calls whom."""
from msl.expressions import Value
from msl.kernels import Kernels
from msl.language import ABSENT_WORDS, FOREIGN, SPACES, is_library_function
from msl.reader import Symbol
from msl.rules import Refused
from msl.types import Type, UNKNOWN, is_atomic

FOLLOWING = {"syntax", "unknown-call"}  # often follow from another fault of the line


class Checker(Kernels):
    def __init__(self, tokens):
        super().__init__(tokens)
        self.graph = {}       # function -> [(callee, token)]
        self.result = None    # of the function that is being read
        self.in_kernel = False

    def run(self):
        self.words()
        while self.token.kind != "end":
            begin = self.at
            try:
                self.top_level()
            except Refused as refused:
                self.faults.append(refused.fault)
                del self.scopes[1:]
                self.at = max(self.at, begin)
                self.skip_statement()
                if self.token.text == "}":
                    self.next()
        self.recursion()
        return self.kept()

    def kept(self):
        """Each rule once a line; what is not understood on a line that is refused anyway tells nothing."""
        known = {(f.file, f.line) for f in self.faults if f.rule not in FOLLOWING}
        return list({(f.file, f.line, f.rule): f for f in self.faults
                     if f.rule not in FOLLOWING or (f.file, f.line) not in known}.values())

    def words(self):
        """Words that need no grammar to be refused."""
        for token in self.tokens:
            if token.kind == "name" and token.text in ABSENT_WORDS:
                self.fault(ABSENT_WORDS[token.text], token.text, token)
            elif token.kind == "name" and token.text in FOREIGN:
                self.fault("grammar", token.text, token)

    # ---- Declarations outside of functions

    def top_level(self):
        if self.accept(";"):
            return
        if self.accept("using"):
            self.using()
        elif self.accept("namespace"):
            self.namespace()
        elif self.token.text == "template":
            self.template()
        elif self.accept("static_assert"):
            self.static_assert()
        else:
            self.declaration()

    def using(self):
        if self.accept("namespace"):
            self.next()
        elif self.ahead().text == "=":
            name = self.next()
            self.expect("=")
            self.declare(name, Symbol("type", self.type_name()))
        else:
            while self.token.text != ";":
                self.next()
        self.expect(";")

    def namespace(self):
        if self.token.text != "{":
            self.next()
        if self.token.text == "::":
            self.fault("grammar", "nested namespaces in one")
            while self.token.text != "{":
                self.next()
        self.expect("{")
        while self.token.text != "}":
            self.top_level()
        self.expect("}")

    def static_assert(self):
        self.expect("(")
        self.assignment()
        if self.accept(","):
            self.next()  # its text
        else:
            self.fault("grammar", "static_assert without a text")
        self.expect(")")
        self.expect(";")

    def template(self):
        self.expect("template")
        self.scopes.append({})
        if self.accept("<"):
            while self.token.text != ">":
                if self.accept("typename", "class"):
                    if self.accept("..."):
                        self.fault("variadic", "a template of any number of arguments")
                    self.declare(self.next(), Symbol("type", UNKNOWN))
                else:
                    declared = self.declarator(self.specifiers().type)
                    if declared.type.base == "auto":
                        self.fault("grammar", "an argument of a template of any type", declared.name)
                    if declared.name:
                        self.declare(declared.name, Symbol("constant", declared.type))
                if self.accept("="):
                    self.type_name() if self.starts_type(0) else self.binary(7)
                if not self.accept(","):
                    break
            self.expect(">")
            self.declaration(scope=-2, kind="template")
        else:
            self.declaration(scope=-2, kind="instance")
        self.scopes.pop()

    def declaration(self, scope=-1, kind="function"):
        """A function, a type or variables; names go into the scope."""
        specifiers = self.specifiers()
        if self.accept(";"):
            return
        while True:
            begin = self.token
            declared = self.declarator(specifiers.type, functions="typedef" not in specifiers.words)
            if declared.parameters is not None:
                if self.function(specifiers, declared, scope, kind):
                    return
            elif "typedef" in specifiers.words:
                self.stated(declared.type, declared.name)
                self.declare(declared.name, Symbol("type", declared.type))
            else:
                self.variable(specifiers, declared, begin)
            if not self.accept(","):
                break
        self.expect(";")

    def variable(self, specifiers, declared, begin):
        """Outside of functions."""
        name = declared.name.text if declared.name else "?"
        self.stated(declared.type, declared.name)
        own = declared.type.space
        if "inline" in specifiers.words:
            self.fault("grammar", f"{name}, an inline variable", begin)
        if own != "constant":
            self.fault("program-scope", f"{name} is not in the constant address space", begin)
        elif self.token.text not in ("=", "{") and "extern" not in specifiers.words:
            self.fault("program-scope", f"{name} is not initialised", begin)
        number = self.initialiser(declared.type, begin).number
        kind = "constant" if "constexpr" in specifiers.words or declared.type.constant or own == "constant" \
            else "variable"
        if declared.name:
            self.declare(declared.name, Symbol(kind, declared.type, number))

    def initialiser(self, type_, token):
        if self.accept("="):
            value = self.braced() if self.token.text == "{" else self.assignment()
            self.convert(type_, value.type, token, "initialisation")
            return value
        if self.token.text == "{":
            return self.braced()
        if self.token.text == "(":
            values = self.arguments()
            return values[0] if len(values) == 1 else Value()
        return Value()

    # ---- Functions

    def function(self, specifiers, declared, scope, kind):
        """True when it had a body."""
        token, result = declared.name or self.token, declared.type.to
        name, is_kernel = token.text, self.is_kernel(specifiers)
        if name == "main":
            self.fault("main", "a function called main", token)
        if is_library_function(name) and not is_kernel:
            self.fault("library-name", name, token)
        self.stated(result, token)
        parameters = [p.type for p in declared.parameters]
        old = self.scopes[scope].get(name)
        overloads = tuple(o for o in (old.overloads if old else ()) if o[0] != parameters)
        body = self.token.text == "{"
        if is_kernel and kind != "instance":
            self.kernel(token, result, declared.parameters)
            if body and name in self.kernels:
                self.fault("kernel-overload", name, token)
            self.kernels.add(name)
        if kind != "instance":
            symbol = Symbol(kind, Type("function", to=result), overloads=overloads + ((parameters, result),))
            if self.look_up(name) is None or name not in self.scopes[scope]:
                self.declare(token, symbol)
                self.scopes[-1].pop(name, None)
            self.scopes[scope][name] = symbol
        if not body:
            return False
        self.calls, self.result, self.in_kernel = [], result, is_kernel
        self.scopes.append({})
        for parameter in declared.parameters:
            if parameter.name:
                type_ = parameter.type
                self.declare(parameter.name, Symbol("variable", type_ if type_.space else type_.at("thread")))
        self.block()
        self.scopes.pop()
        self.graph.setdefault(name, []).extend(self.calls)
        return True

    def recursion(self):
        told = set()
        for name in self.graph:
            reached, open_, closing = set(), [name], None
            while open_:
                for callee, token in self.graph.get(open_.pop(), []):
                    closing = token if callee == name else closing
                    if callee not in reached:
                        reached.add(callee)
                        open_.append(callee)
            if closing and name not in told:
                self.fault("recursion", name, closing)
                told |= reached  # the others of the circle too

    # ---- Statements

    def block(self):
        self.expect("{")
        self.scopes.append({})
        while self.token.text != "}":
            self.recovering_statement()
        self.expect("}")
        self.scopes.pop()

    def recovering_statement(self):
        depth, begin = len(self.scopes), self.at
        try:
            self.statement()
        except Refused as refused:
            self.faults.append(refused.fault)
            del self.scopes[depth:]
            self.skip_statement()
            if self.at == begin:  # the end
                raise

    def statement(self):
        self.attributes() if self.token.text == "[" and self.ahead().text == "[" else None
        token = self.token
        handler = {"{": self.block, "if": self.if_, "for": self.for_, "while": self.while_, "do": self.do_,
                   "switch": self.while_, "return": self.return_}.get(token.text)
        if handler:
            handler()
        elif self.accept("break", "continue"):
            self.expect(";")
        elif self.accept("case"):
            self.conditional()
            self.expect(":")
        elif self.accept("default"):
            self.expect(":")
        elif self.accept("static_assert"):
            self.static_assert()
        elif self.accept("asm", "__asm__", "__asm"):
            self.skip_statement()  # refused as a word
        elif self.accept(";"):
            pass
        elif token.text == "using" or token.text == "typedef":
            self.top_level()
        elif token.kind == "name" and self.ahead().text == ":" and not self.is_type_name(token):
            self.refuse("goto", f"the label {token.text}")
        elif self.starts_type(0):
            self.local()
        else:
            self.expression()
            self.expect(";")

    def local(self):
        specifiers, begin = self.specifiers(), self.token
        if "static" in specifiers.words:
            self.fault("static-local", "static inside a function", begin)
        if self.accept(";"):
            return
        while True:
            token = self.token
            if specifiers.type.base == "auto" and token.text == "[":
                self.binding()
                return
            declared = self.declarator(specifiers.type)
            self.stated(declared.type, declared.name)
            own = declared.type.space
            if is_atomic(declared.type) and not own:
                self.fault("atomic-type", "in the thread's memory", token)
            if own == "threadgroup":
                where = "a kernel" if self.in_kernel else "a function that is no kernel"
                self.fault("threadgroup-variable", f"in {where}", token)
            elif own in SPACES - {"thread"} and "static" not in specifiers.words:
                self.fault("local-space", f"a variable in {own}", token)
            value = self.initialiser(declared.type, token)
            type_ = declared.type
            if type_.kind == "value" and type_.base == "auto":
                type_ = value.type
            is_constant = "constexpr" in specifiers.words or \
                type_.constant and type_.kind == "value" and value.constant
            if declared.name:
                self.declare(declared.name, Symbol("constant" if is_constant else "variable",
                                                   type_ if own else type_.at("thread"), value.number))
            if not self.accept(","):
                break
        self.expect(";") if self.token.text != ":" else None

    def binding(self):
        self.fault("grammar", "a structured binding")
        while self.token.text != "]":
            self.next()
            if self.token.kind == "name":
                self.declare(self.token, Symbol("variable", UNKNOWN))
        self.expect("]")
        self.initialiser(UNKNOWN, self.token)
        self.expect(";")

    def condition(self):
        self.expect("(")
        self.local_condition() if self.starts_type(0) else self.expression()
        self.expect(")")

    def local_condition(self):
        declared = self.declarator(self.specifiers().type)
        value = self.initialiser(declared.type, self.token)
        self.declare(declared.name, Symbol("variable", declared.type.at("thread"), value.number))

    def if_(self):
        self.expect("if")
        if self.token.text == "constexpr":
            self.fault("grammar", "if constexpr")
            self.next()
        self.condition()
        self.recovering_statement()
        if self.accept("else"):
            self.recovering_statement()

    def for_(self):
        self.expect("for")
        self.expect("(")
        self.scopes.append({})
        if self.starts_type(0):
            self.local()
        elif not self.accept(";"):
            self.expression()
            self.expect(";")
        if not self.accept(":"):
            if self.token.text != ";":
                self.expression()
            self.expect(";")
            if self.token.text != ")":
                self.expression()
        else:
            self.expression()
        self.expect(")")
        self.recovering_statement()
        self.scopes.pop()

    def while_(self):
        self.next()
        self.condition()
        self.recovering_statement()

    def do_(self):
        self.expect("do")
        self.recovering_statement()
        self.expect("while")
        self.condition()
        self.expect(";")

    def return_(self):
        token = self.expect("return")
        if self.token.text != ";":
            value = self.braced() if self.token.text == "{" else self.expression()
            if self.result is not None:
                self.convert(self.result, value.type, token, "return")
        self.expect(";")
