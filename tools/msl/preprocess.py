"""The preprocessor: conditions, macros, pragmas, and includes of files that folders given to it have.

What it yields has the lines of the text; what comes from a macro has the line of its use."""
import re
from pathlib import Path

from msl.language import is_reserved
from msl.rules import Fault, Refused
from msl.tokens import Token, tokenize

PREDEFINED = {"__METAL_VERSION__": "310", "__METAL__": "1", "__METAL_MACOS__": "1"}
LIBRARY = "metal_stdlib"
CONTRACT_OFF = {"METAL fp contract(off)", "STDC FP_CONTRACT OFF"}
HARMLESS = re.compile(r"once|(no)?unroll|unroll\(\w+\)|clang loop unroll(_count)?\(\w+\)"
                      r"|clang diagnostic (push|pop|ignored \"-W[\w-]+\")"
                      r"|clang fp contract\(off\)|METAL fp math_mode\(safe\)")


class Macro:
    def __init__(self, parameters, body):
        self.parameters, self.body = parameters, body


def value_of(text, token):
    """An integer of a condition."""
    try:
        return int(re.sub(r"[uUlL]+$", "", text), 0)
    except ValueError:
        raise Refused(token, "syntax", f"{text} in a condition") from None


class Preprocessor:
    def __init__(self, folders):
        self.folders, self.faults = folders, []
        self.macros = {name: Macro(None, tokenize(value, "")[:1]) for name, value in PREDEFINED.items()}
        self.once, self.contract_off = set(), False
        self.output = []

    def fault(self, token, rule, detail):
        self.faults.append(Fault(token.file, token.line, rule, detail))

    def run(self, text, file):
        self.read(text, file)
        last = self.output[-1].line if self.output else 1
        return self.output + [Token("end", "", file, last)]

    def read(self, text, file):
        tokens, at, conditions, pending = tokenize(text, file), 0, [], []
        opened = []
        while at < len(tokens):
            token = tokens[at]
            end = next(i for i in range(at, len(tokens)) if tokens[i].kind == "newline")
            if token.text == "#" and token.first:
                active = all(c == "on" for c in conditions)
                if active:
                    self.expand_into_output(pending)
                    pending = []
                try:
                    self.directive(tokens[at + 1:end], token, conditions, active)
                except (IndexError, StopIteration, SyntaxError):
                    raise Refused(token, "syntax", "a directive that is not understood") from None
                del opened[len(conditions):]
                opened += [token] * (len(conditions) - len(opened))
            elif all(c == "on" for c in conditions):
                pending += tokens[at:end]
            at = end + 1
        if conditions:
            raise Refused(opened[-1], "syntax", "a condition without #endif")
        self.expand_into_output(pending)

    def expand_into_output(self, tokens):
        for token in self.expand(tokens, frozenset()):
            if not self.contract_off and token.text == "{" and self.output and self.output[-1].text == ")":
                self.fault(token, "contraction", "a function before contraction is off")
                self.contract_off = True  # said once
            self.output.append(token)

    # ---- Directives

    def directive(self, line, hash_token, conditions, active):
        name, rest = (line[0].text, line[1:]) if line else ("", [])
        if name in ("if", "ifdef", "ifndef"):
            taken = active and self.condition(name, rest, line[0])
            conditions.append("on" if taken else "off" if active else "dead")
        elif name in ("elif", "else", "endif"):
            if not conditions:
                raise Refused(line[0], "syntax", f"#{name} without #if")
            state = conditions.pop()
            if name == "else":
                conditions.append("on" if state == "off" else "dead")
            elif name == "elif":
                taken = state == "off" and self.condition("if", rest, line[0])
                conditions.append("on" if taken else "off" if state == "off" else "dead")
        elif not active or not name:
            return
        elif name == "define":
            self.define(rest, line[0])
        elif name == "undef":
            self.macros.pop(rest[0].text, None)
        elif name == "include":
            self.include(rest, line[0])
        elif name == "pragma":
            self.pragma(rest, line[0])
        elif name != "line":
            raise Refused(line[0] if line else hash_token, "syntax", f"#{name}")

    def condition(self, name, tokens, at):
        if name in ("ifdef", "ifndef"):
            return (tokens[0].text in self.macros) == (name == "ifdef")
        words, i = [], 0
        while i < len(tokens):
            if tokens[i].text == "defined":
                i += 2 if tokens[i + 1].text == "(" else 1
                words.append(Token("number", str(int(tokens[i].text in self.macros)), at.file, at.line))
                i += tokens[i - 1].text == "("
            else:
                words.append(tokens[i])
            i += 1
        text = []
        for token in self.expand(words, frozenset()):
            if token.kind == "number":
                text.append(str(value_of(token.text, at)))
            elif token.kind == "name":
                text.append("0")
            else:
                text.append({"&&": " and ", "||": " or ", "!": " not ", "/": "//"}.get(token.text, token.text))
        if not re.fullmatch(r"(?:[0-9() <>=+*%-]|!=|//| and | or | not )+", "".join(text)):
            raise Refused(at, "syntax", "a condition that is not understood")
        return bool(eval("".join(text), {"__builtins__": {}}))  # digits and operators only

    def define(self, tokens, at):
        name, rest = tokens[0].text, tokens[1:]
        parameters = None
        if rest and rest[0].text == "(" and not rest[0].spaced:
            close = next(i for i, t in enumerate(rest) if t.text == ")")
            parameters = [t.text for t in rest[1:close] if t.text != ","]
            rest = rest[close + 1:]
            if "..." in parameters:
                self.fault(at, "variadic", f"macro {name}")
        if name in PREDEFINED or is_reserved(name):
            self.fault(at, "reserved-name", f"macro {name}")
        self.macros[name] = Macro(parameters, rest)

    def include(self, tokens, at):
        name = "".join(t.text for t in tokens)
        if name == f"<{LIBRARY}>":
            return
        local = name[1:-1] if name.startswith('"') else None
        path = next((p for f in self.folders if local and (p := Path(f) / local).is_file()), None)
        if not path:
            self.fault(at, "include", name)
        elif path not in self.once:
            text = path.read_text(encoding="utf-8")
            if re.search(r"^#\s*pragma\s+once", text, re.M):
                self.once.add(path)
            self.read(text, str(path))

    def pragma(self, tokens, at):
        text = "".join((" " if t.spaced and i else "") + t.text for i, t in enumerate(tokens))
        if text in CONTRACT_OFF:
            self.contract_off = True
        elif re.fullmatch(r"(METAL|clang) fp contract\((on|fast)\)|STDC FP_CONTRACT (ON|DEFAULT)", text):
            self.fault(at, "contraction", text)
        elif not HARMLESS.fullmatch(text):
            self.fault(at, "pragma", text)

    # ---- Macros

    def expand(self, tokens, hidden):
        result, at = [], 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            macro = self.macros.get(token.text) if token.kind == "name" and token.text not in hidden else None
            if macro is None:
                result.append(token)
                continue
            arguments = {}
            if macro.parameters is not None:
                if at == len(tokens) or tokens[at].text != "(":
                    result.append(token)
                    continue
                lists, at = self.arguments(tokens, at, token)
                arguments = dict(zip(macro.parameters, lists))
            body = self.substitute(macro.body, arguments, hidden)
            body = [t._replace(file=token.file, line=token.line) for t in body]
            result += self.expand(body, hidden | {token.text})
        return result

    @staticmethod
    def arguments(tokens, at, token):
        """The arguments in parentheses at `at`, and where they end."""
        lists, depth = [[]], 0
        for i in range(at, len(tokens)):
            text = tokens[i].text
            depth += (text in "([{" and len(text) == 1) - (text in ")]}" and len(text) == 1)
            if depth == 0:
                return lists, i + 1
            if text == "," and depth == 1:
                lists.append([])
            elif i > at:
                lists[-1].append(tokens[i])
        raise Refused(token, "syntax", f"{token.text}: a macro's arguments do not end")

    def substitute(self, body, arguments, hidden):
        result, i = [], 0
        while i < len(body):
            token, joined = body[i], i + 1 < len(body) and body[i + 1].text == "##"
            if token.text == "#" and i + 1 < len(body) and body[i + 1].text in arguments:
                text = "".join((" " if t.spaced else "") + t.text for t in arguments[body[i + 1].text])
                result.append(Token("string", f'"{text.strip()}"', token.file, token.line))
                i += 1
            elif token.text == "##" and result and i + 1 < len(body):
                right = arguments.get(body[i + 1].text, [body[i + 1]])
                left = result.pop()
                pasted = tokenize(left.text + (right[0].text if right else ""), token.file)[:-1]
                result += [t._replace(line=token.line) for t in pasted] + right[1:]
                i += 1
            elif token.text in arguments:
                whole = arguments[token.text]
                result += whole if joined else self.expand(whole, hidden)
            else:
                result.append(token)
            i += 1
        return result
