"""Types as far as address spaces need them.

An object lies in a space (None: not stated).  A pointer's `to` is the type of the object it points to, whose
space is what MSL wants stated; an array's elements lie where the array lies."""
from typing import NamedTuple, Optional


class Type(NamedTuple):
    kind: str                      # "value", "pointer", "reference", "array", "function"
    base: str = ""                 # of a value: its name, "" when unknown
    space: Optional[str] = None    # where the object itself lies
    constant: bool = False         # const, as far as writing goes
    to: Optional["Type"] = None    # of pointers, references and arrays; what a function returns

    def at(self, space):
        """This type for an object in a space; arrays take their elements along."""
        to = self.to.at(space) if self.kind == "array" else self.to
        return self._replace(space=space, to=to)


UNKNOWN = Type("value")


def pointer(to, space=None):
    return Type("pointer", space=space, to=to)


def decayed(type_):
    """What an array becomes in an expression; a reference is its object."""
    if type_ is not None and type_.kind == "reference":
        type_ = type_.to
    if type_ is not None and type_.kind == "array":
        return pointer(type_.to)
    return type_


def missing_space(type_):
    """Whether some pointer or reference in a type points into no stated space."""
    if type_.kind in ("pointer", "reference"):
        inner = type_.to
        while inner.kind == "array":
            inner = inner.to
        if inner.kind != "function" and inner.space is None and inner.base != "auto":
            return True
    return type_.to is not None and missing_space(type_.to)


def misplaced_atomic(type_):
    """Whether a type leads to an atomic in a space whose atomics no function takes."""
    if type_.kind == "value":
        return is_atomic(type_) and type_.space in ("thread", "constant")
    return type_.to is not None and misplaced_atomic(type_.to)


def is_atomic(type_):
    """An atomic object, or an array of them."""
    return is_atomic(type_.to) if type_.kind == "array" else type_.base.startswith("atomic")


def clash(target, source):
    """The two spaces where a pointer or reference cannot become another, or None."""
    source = decayed(source)
    if target is None or source is None:
        return None
    if target.kind == "reference":
        return space_clash(target.to, source)
    if target.kind == "pointer" and source.kind == "pointer":
        return space_clash(target.to, source.to) or clash(target.to, source.to)
    return None


def space_clash(target, source):
    if target.space and source.space and target.space != source.space:
        return source.space, target.space
    return None
