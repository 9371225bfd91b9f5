"""The rules of check_msl: what each refuses, and who says so.

Numbers are sections of Apple's Metal Shading Language Specification as version 4 (2025) prints them; what it
marks as newer than 3.1 counts as absent.  "plumb" marks rules of our own:
what MSL allows but the bits, the emulator or the reader do not bear."""
from typing import NamedTuple


class Rule(NamedTuple):
    section: str
    text: str


RULES = {
    # Text and preprocessor
    "include": Rule("1.5.4", "nothing is included but <metal_stdlib>: newLibraryWithSource finds no other "
                             "file, and MSL has no C++ standard library"),
    "contraction": Rule("1.6.3", "a*b+c may become one operation unless a pragma before the first function "
                                 "says contract(off), and safe maths says on"),
    "pragma": Rule("plumb", "pragmas that change arithmetic, or that no one here knows"),
    "string": Rule("plumb", "string literals: only [[host_name]] takes one"),
    "reserved-name": Rule("2.1, 4, 5.1", "names that MSL or C++ has taken, such as half and device"),
    "grammar": Rule("1.5", "C or newer C++ that compilers take for C++14: designated initialisers, compound "
                           "literals, hexadecimal floating literals, structured bindings, inline variables, "
                           "implicit int"),
    "syntax": Rule("1.5", "text that this checker does not understand"),
    # Types
    "type": Rule("2.1", "double, long long and long double"),
    "float-literal": Rule("plumb", "a floating literal without f or h: float in MSL, double in C++"),
    "array-bound": Rule("1.5", "arrays whose size is not a constant"),
    "bit-field": Rule("plumb", "bit-fields, which host and kernel may lay out differently"),
    "vector-conversion": Rule("2.22", "a vector becomes no other type by itself"),
    "vector-logic": Rule("plumb", "comparisons and logic of vectors: what is true is 1 in MSL, and all bits set in "
                                  "the vectors of the emulator's compiler"),
    "function-pointer": Rule("plumb", "function pointers (in MSL since 2.3)"),
    # What MSL leaves out of C++
    "lambda": Rule("1.5.4", "lambda expressions"),
    "dynamic-cast": Rule("1.5.4", "dynamic_cast"),
    "typeid": Rule("1.5.4", "typeid"),
    "new-delete": Rule("1.5.4", "new and delete"),
    "noexcept": Rule("1.5.4", "noexcept"),
    "goto": Rule("1.5.4", "goto and its labels"),
    "storage": Rule("1.5.4, 5.3", "register and thread_local"),
    "static-local": Rule("5.3", "static variables inside functions"),
    "virtual": Rule("1.5.4", "virtual functions"),
    "derived-class": Rule("1.5.4", "derived classes"),
    "exceptions": Rule("1.5.4", "try, catch and throw"),
    "main": Rule("1.5.4", "a function called main"),
    "asm": Rule("plumb", "assembler"),
    "variadic": Rule("plumb", "functions and templates of any number of arguments"),
    "recursion": Rule("plumb", "recursion (in MSL since 2.4, on a stack whose depth the host must state)"),
    # Address spaces
    "address-space": Rule("4", "a pointer or reference that does not say which memory it points into"),
    "space-conversion": Rule("4", "a pointer or reference from one address space into another"),
    "constant-write": Rule("4.2", "writing to the constant address space"),
    "program-scope": Rule("4.2", "variables outside of functions that are not constant, or not initialised"),
    "local-space": Rule("4.3", "variables in functions are in the thread's memory"),
    "threadgroup-variable": Rule("4.4, plumb", "threadgroup variables: only kernels may have them, and ours "
                                               "take them as arguments"),
    # Kernels
    "kernel-void": Rule("5.1.3", "a kernel that returns something"),
    "kernel-overload": Rule("1.5.1", "two kernels of one name"),
    "kernel-call": Rule("5.1", "a kernel that is called"),
    "kernel-attribute": Rule("5.2.1, 5.2.3.6", "a kernel's parameter without an attribute, or with one that "
                                               "is not for it"),
    "kernel-index": Rule("5.2.1", "indices that are not unique, or not below 31 (Metal Feature Set Tables)"),
    "kernel-type": Rule("5.2, 5.2.3.6", "parameters of types that kernels may not have"),
    # The library
    "atomic-type": Rule("2.6, plumb", "atomics other than atomic_int and atomic_uint, or elsewhere than "
                                       "in device and threadgroup memory"),
    "atomic-function": Rule("6.15.4", "atomic functions that MSL has not, or not for 32 bits"),
    "memory-order": Rule("6.15.1", "memory orders other than memory_order_relaxed"),
    "lane-order": Rule("6.9.2, plumb", "reductions over lanes in an order that no one states"),
    "fast-math": Rule("6.5, plumb", "the namespace fast, and square roots that are not precise::"),
    "math-function": Rule("8.4, plumb", "functions of metal that are not correctly rounded: src/arith has them"),
    "library-name": Rule("6", "a function with the name of one of metal's: with `using namespace metal` a call may "
                              "mean either"),
    "unknown-call": Rule("6", "calls of what neither the text nor the list of library functions we use has"),
}


class Fault(NamedTuple):
    file: str
    line: int
    rule: str
    detail: str

    def __str__(self):
        rule = RULES[self.rule]
        return f"{self.file}:{self.line}: {self.rule} ({rule.section}): {self.detail}; {rule.text}"


class Refused(Exception):
    """Ends the reading of a declaration or of the text."""

    def __init__(self, token, rule, detail):
        super().__init__(detail)
        self.fault = Fault(token.file, token.line, rule, detail)
