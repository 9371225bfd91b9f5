#!/usr/bin/env python3
"""JSON texts and what Python's json module makes of them.

Prints tests/data/chat/python_json.jsonl, one case a line: {"source": text, "printed": text or null
if Python refuses it}.  With --check FILE it compares instead; the exit status says the result.
"""
import decimal
import json
import math
import random
import struct
import sys

VALUES = [
    'null', 'true', 'false', '0', '-0', '-0.0', '0.0', '1', '-1', '1.0', '1e-7', '1E400', '-1e999',
    '12345678901234567890', '-123456789012345678901234567890', '9' * 400, '1e5', '1E+5', '1e16',
    '1e15', '123456789012345680.0', '9999999999999998.0', '0.0001', '0.00001', '1e-400', '5e-324',
    '2.2250738585072014e-308', '1.7976931348623157e308', '1.7976931348623159e308', '0.1', '0.30',
    '100.0', '1e22', '1e23', '0e0', '0e99999999999999999999', '1e99999999999999999999',
    '1e-99999999999999999999', '0.' + '0' * 330 + '1e330', '1' + '0' * 330 + 'e-330',
    'NaN', 'Infinity', '-Infinity', '[NaN, -Infinity]',
    '""', '"a"', '"\\u0041"', '"\\u00e9"', '"é北京😀"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\u001f"',
    '"\\u007f"', '"\x7f"', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"</script>"', '"\\u2028"', '"\\uFFFF"',
    '[]', '{}', '[ ]', '{ }', ' [1 , 2,3 ] ', '\t\r\n1\n', '{"a":1,"b":[true,{"c":null}]}',
    '{"a": 1, "b": 2, "a": 3}', '{"a": 1, "\\u0061": 2}', '{"": 0}', '{"b": {"x": 1, "x": 2}, "b": 5, "c": 1}',
    '{"n": 1.0, "x": 1e-7, "big": 12345678901234567890}', '[[[[[[[[]]]]]]]]',
]
REFUSED = [
    '', ' ', '01', '-', '+1', '.5', '1.', '1.e5', '1e', '1e+', '--1', '-01', '0x10', 'nan', 'inf',
    '-NaN', 'Inf', 'True', 'None', 'nul', 'tru', '"', '"a', '"\n"', '"\t"', '"\x00"', '"\x1f"', '"\\x"',
    '"\\u12"', '"\\u12g4"', '"\\', "'a'", '[', '[1', '[1,', '[1,]', '[,1]', '[1 2]', '{', '{"a"',
    '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', '{,}', '{a:1}', '{1:2}', '{"a" 1}', ']', '}', '1 2',
    'null null', '\ufeff1', '\u00a01', '[1]]', '// x\n1', '/* */1',
    # Python reads lone surrogates, but cannot write them as UTF-8.
    '"\\ud800"', '"\\udc00"', '"\\ud800x"', '"\\ud800\\u0041"', '"\\udc00\\ud800"',
]


def doubles():
    """Numbers whose shortest form is hard to find, written so that reading them is hard too."""
    chance = random.Random(20241017)
    yield from (math.ldexp(1.0, e) for e in range(-1074, 1024))
    for _ in range(1500):
        value = struct.unpack('<d', struct.pack('<Q', chance.getrandbits(64)))[0]
        if math.isfinite(value):
            yield value
    for _ in range(300):
        yield chance.getrandbits(53) * 10.0 ** chance.randrange(-20, 20)


def midpoints():
    """Halfway between two doubles, and a little beside it beyond any buffer."""
    decimal.getcontext().prec = 3000
    for value in (1.0, 0.1, 5e-324, 2.0 ** -44, 1e300, 2.2250738585072014e-308):
        middle = (decimal.Decimal(value) + decimal.Decimal(math.nextafter(value, math.inf))) / 2
        tiny = middle * decimal.Decimal(10) ** -1000
        for number in (middle, middle - tiny, middle + tiny):
            yield str(number)


def cases():
    for source in VALUES + REFUSED:
        try:
            printed = json.dumps(json.loads(source), ensure_ascii=False)
            printed.encode('utf-8')
        except (ValueError, UnicodeEncodeError):
            printed = None
        yield source, printed
    lists, numbers = [], [f'{value:.17e}' for value in doubles()]
    for start in range(0, len(numbers), 64):
        lists.append('[' + ','.join(numbers[start:start + 64]) + ']')
    lists += ['[' + number + ']' for number in midpoints()]
    for source in lists:
        yield source, json.dumps(json.loads(source), ensure_ascii=False)


def main():
    text = ''.join(json.dumps({'source': source, 'printed': printed}) + '\n' for source, printed in cases())
    if len(sys.argv) == 3 and sys.argv[1] == '--check':
        with open(sys.argv[2], encoding='ascii') as file:
            if file.read() == text:
                return 0
        print(f'{sys.argv[2]} is not what this Python prints', file=sys.stderr)
        return 1
    sys.stdout.write(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
