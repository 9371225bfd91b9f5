"""Kernels: what they return and take, and where the host binds it (5.1.3, 5.2.1, 5.2.3.6)."""
from msl.declarations import Declarations
from msl.language import BUILT_INS, FUNCTION_KINDS, MAX_INDEX
from msl.rules import Refused

NO_ARGUMENTS = {"size_t", "ptrdiff_t"}  # types that no parameter may have (5.2)


class Kernels(Declarations):
    @staticmethod
    def is_kernel(specifiers):
        return bool(specifiers.words & FUNCTION_KINDS) or \
            any(name.text in FUNCTION_KINDS for name, _ in specifiers.attributes)

    def kernel(self, token, result, parameters):
        if result.kind != "value" or result.base != "void":
            self.fault("kernel-void", token.text, token)
        taken, components = {}, set()
        for parameter in parameters:
            self.kernel_parameter(parameter, taken, components)
        if len(components) > 1:
            self.fault("kernel-type", "positions of different numbers of components", token)

    def kernel_parameter(self, parameter, taken, components):
        name = parameter.name.text if parameter.name else "?"
        token = parameter.name or parameter.token
        if len(parameter.attributes) != 1:
            self.fault("kernel-attribute", f"{name} has {len(parameter.attributes)}, not one", token)
            return
        attribute, argument = parameter.attributes[0]
        if attribute.text in ("buffer", "threadgroup"):
            self.kernel_memory(parameter, attribute, argument, taken)
        elif attribute.text in BUILT_INS:
            base = {"uint32_t": "uint", "uint16_t": "ushort"}.get(parameter.type.base, parameter.type.base)
            allowed = [t + (str(n) if n > 1 else "") for t in ("ushort", "uint") for n in BUILT_INS[attribute.text]]
            if parameter.type.kind != "value" or base not in allowed:
                self.fault("kernel-type", f"{name}: {attribute.text} takes {', '.join(allowed)}", token)
            elif len(BUILT_INS[attribute.text]) > 1 and base[-1].isdigit():
                components.add(base[-1])
        else:
            self.fault("kernel-attribute", f"{name}: {attribute.text} is not for it", token)

    def kernel_memory(self, parameter, attribute, argument, taken):
        token, type_ = parameter.name or parameter.token, parameter.type
        spaces = {"buffer": ("device", "constant"), "threadgroup": ("threadgroup",)}[attribute.text]
        if type_.kind not in ("pointer", "reference"):
            self.fault("kernel-type", f"{token.text}: {attribute.text} takes a pointer or reference", token)
        elif type_.to.space and type_.to.space not in spaces:
            self.fault("kernel-type", f"{token.text}: {attribute.text} is in {' or '.join(spaces)}", token)
        elif type_.to.base in NO_ARGUMENTS:
            self.fault("kernel-type", f"{token.text}: {type_.to.base}", token)
        elif space := self.space_inside(type_.to):
            self.fault("kernel-type", f"{token.text}: a struct that points into {space} memory", token)
        index = self.number_of(argument)
        if index is None or not 0 <= index <= MAX_INDEX:
            self.fault("kernel-index", f"{token.text}: {' '.join(t.text for t in argument) or 'none'}", token)
        elif (attribute.text, index) in taken:
            self.fault("kernel-index", f"{token.text} and {taken[attribute.text, index]} are both {index}", token)
        taken[attribute.text, index] = token.text

    def space_inside(self, type_):
        """Where some pointer of a struct points that no memory of the host's may hold, or None."""
        for member in self.members.get(type_.base, {}).values():
            while member.kind == "array":
                member = member.to
            if member.kind != "value" and member.to.space in ("thread", "threadgroup"):
                return member.to.space
            if member.kind == "value" and (space := self.space_inside(member)):
                return space
        return None

    def number_of(self, tokens):
        """The value of tokens that are elsewhere in the text."""
        here, tokens_here = self.at, self.tokens
        try:
            self.tokens, self.at = tokens + [self.token._replace(kind="end", text="")], 0
            return self.assignment().number
        except Refused:
            return None
        finally:
            self.tokens, self.at = tokens_here, here
